package echo

import (
	"context"
	"io"
	"regexp"
	"testing"
	"time"
)

// TestEachServerAnswers asks every server from several clients at once. Each answer is compared with its message.
func TestEachServerAnswers(t *testing.T) {
	for kind := range servers {
		t.Run(string(kind), func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			in, out := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- Serve(ctx, []string{"-kind", string(kind)}, out) }()
			head := make([]byte, 64)
			n, err := in.Read(head)
			if err != nil {
				t.Fatal(err)
			}
			address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(head[:n]))
			for _, isShared := range []bool{false, true} {
				if isShared && kind == ZMQ { // a socket has one client
					continue
				}
				got, err := Ask(t.Context(), kind, isShared, address, 4, 20*time.Millisecond)
				if err != nil || got.Answers == 0 {
					t.Errorf("shared %v: %d answers: %v", isShared, got.Answers, err)
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the server ended: %v", err)
			}
		})
	}
}

// A server that leaves ends all calls that wait on a shared connection.
func TestEndOfTheServerEndsAllCalls(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	go func() { _ = Serve(ctx, []string{"-kind", string(GRPC)}, out) }() // it answers no frame
	head := make([]byte, 64)
	n, err := in.Read(head)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(head[:n]))
	if _, err := Ask(t.Context(), Frames, true, address, 4, 20*time.Millisecond); err == nil {
		t.Error("a server of gRPC answers frames")
	}
}
