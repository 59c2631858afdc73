package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/request"
)

// TestContentsInTheBucketOfTheSettings: the settings name a bucket and its key, and contents are stored there.
func TestContentsInTheBucketOfTheSettings(t *testing.T) {
	bucket := s3mem.New()
	checktest.MustNoError(t, bucket.CreateBucket("contents"), "create the bucket")
	handler := gofakes3.New(bucket).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=reader/") {
			t.Errorf("%s %s is not signed with the key of the settings", r.Method, r.URL)
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	cfg, err := config.Parse(fmt.Appendf(nil, `
viewer: {listen: "127.0.0.1:0"}
sources:
  twilio: {spec: twilio, user: AC00000000000000000000000000000001, secret: "file:one", upstream: "http://127.0.0.1:1",
    listen: "127.0.0.1:0", media: [recordings]}
store: {contents: "s3://contents/node", s3: {endpoint: %q, key: reader, secret: "file:two"}}
`, server.URL), noEnv)
	checktest.MustNoError(t, err, "parse the settings")
	cfg.Log.Access = "off"
	dir, err := datadir.Open(t.TempDir(), false)
	checktest.MustNoError(t, err, "open the data folder")
	defer dir.Close()
	a, err := Build(t.Context(), Options{Settings: cfg, Folder: t.TempDir(), Secrets: namedSecrets, Dir: dir, By: "config",
		Stderr: io.Discard})
	checktest.MustNoError(t, err, "build")
	defer a.close()
	c := request.Content{Key: understudy.Key{Source: "twilio", URI: "/r.wav"}, Kind: "recordings", ID: "RE1", Size: -1}
	_, err = a.files.Put(t.Context(), c, strings.NewReader("the voice"))
	checktest.MustNoError(t, err, "store a content")
	all, err := bucket.ListBucket("contents", &gofakes3.Prefix{HasPrefix: true, Prefix: "node/content/"}, gofakes3.ListBucketPage{})
	checktest.MustNoError(t, err, "list the bucket")
	checktest.Equal(t, len(all.Contents), 1, "contents in the bucket")
}
