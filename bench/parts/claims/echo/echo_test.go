package echo

import (
	"context"
	"io"
	"regexp"
	"testing"
	"time"
)

// TestEachTopologyAnswers asks every server from several clients at once. Each answer is compared with its message.
func TestEachTopologyAnswers(t *testing.T) {
	for _, kind := range []string{One, IPC, Inproc, GRPC} {
		for _, work := range []string{"0", "1ms"} {
			t.Run(kind+" "+work, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				in, out := io.Pipe()
				ended := make(chan error, 1)
				go func() { ended <- Serve(ctx, []string{"-kind", kind, "-work", work}, out) }()
				head := make([]byte, 64)
				n, err := in.Read(head)
				if err != nil {
					t.Fatal(err)
				}
				address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(head[:n]))
				got, err := Ask(t.Context(), kind, address, 4, 20*time.Millisecond)
				if err != nil || got.Rate == 0 {
					t.Errorf("%v answers a second: %v", got.Rate, err)
				}
				stop()
				if err := <-ended; err != nil {
					t.Errorf("the server ended: %v", err)
				}
			})
		}
	}
}
