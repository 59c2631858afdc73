// Contents in a bucket instead of a folder.

package proxy_test

import (
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"understudy"
	"understudy/internal/store/contents"
)

// newBucket returns a bucket of an S3-compatible store that runs in this process.
func newBucket(t *testing.T) contents.S3 {
	bucket := s3mem.New()
	check(t, bucket.CreateBucket("contents"))
	server := httptest.NewServer(gofakes3.New(bucket, gofakes3.WithTimeSkewLimit(0)).Server())
	t.Cleanup(server.Close)
	return contents.S3{URL: "s3://contents", Endpoint: server.URL, Key: "key", Secret: understudy.NewSecret("secret")}
}

// inEveryStore runs a test with contents in a folder and with contents in a bucket.
func inEveryStore(t *testing.T, test func(t *testing.T)) {
	t.Run("folder", test)
	t.Run("bucket", test)
}
