// Bare: the least a net/http server does to hand out stored bytes, as a child
// process of the bench; what a warm page is measured beside.

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// Bare serves one page until the context ends: a gzipped file to clients that accept gzip, and a plain file to
// others. It sends only the fields that every answer needs: length, type and encoding.
func Bare(ctx context.Context, args []string, out io.Writer) error {
	fs := NewFlags("bare", out)
	identity := fs.String("identity", "", "file of the body as it is")
	packed := fs.String("gzip", "", "file of the gzipped body")
	if err := fs.Parse(args); err != nil {
		return err
	}
	plain, err1 := os.ReadFile(*identity)
	zipped, err2 := os.ReadFile(*packed)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: bareHandler(plain, zipped), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintf(out, "bare  http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func bareHandler(plain, zipped []byte) http.Handler {
	plainLength, zippedLength := fmt.Sprint(len(plain)), fmt.Sprint(len(zipped))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", zippedLength)
			_, _ = w.Write(zipped)
			return
		}
		h.Set("Content-Length", plainLength)
		_, _ = w.Write(plain)
	})
}
