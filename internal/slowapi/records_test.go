// Tests of writes that cannot be kept.
package slowapi_test

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

// TestUnkeptWritesAreNotMade: what cannot be kept does not happen.
func TestUnkeptWritesAreNotMade(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 50, Journal: filepath.Join(t.TempDir(), "journal")})
	want := r.ReadEverything()
	file := r.Server.Journal().File
	r.Server.Journal().File, _ = os.Open(file.Name()) // only for reading
	status, body, _ := r.Ask("POST", root+"/Calls.json", url.Values{"To": {"+1500"}, "From": {"+1501"}})
	if status != 500 || !strings.Contains(string(body), `"code":20500`) {
		t.Errorf("%d %s", status, body)
	}
	r.Control("/-/advance", `{"calls":1}`, 500)
	if !bytes.Equal(r.ReadEverything(), want) {
		t.Error("an unkept write was made")
	}
	_ = r.Server.Journal().File.Close()
	r.Server.Journal().File = file
}
