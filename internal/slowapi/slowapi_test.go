// Tests of options.
package slowapi_test

import (
	"testing"
	"time"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

const (
	root    = slowapitest.Root
	mainSID = slowapitest.Account
)

type record = slowapitest.Record

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []slowapi.Options{{Latency: -1}, {Records: -1}, {Records: 2e9}, {Cap: -1}, {Arrivals: -1}, {Arrivals: 1e9},
		{Account: "AC1"}, {Epoch: time.Unix(-9e9, 0)}} {
		if s, err := slowapi.New(o); err == nil {
			_ = s.Close()
			t.Errorf("%+v was taken", o)
		}
	}
}

func TestOtherShapesRefuseWhatIsTwiliosAlone(t *testing.T) {
	for _, o := range []slowapi.Options{{Shape: "nobody"}, {Shape: "github", Journal: "x"}, {Shape: "stripe", Records: slowapi.MaxTable + 1},
		{Shape: "github", Quirks: []string{"media-late"}}} {
		if _, err := slowapi.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
