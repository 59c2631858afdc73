// Tests of quirks.
package world_test

import (
	"net/url"
	"strings"
	"testing"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

func TestQuirks(t *testing.T) {
	if _, err := slowapi.New(slowapi.Options{Quirks: []string{"edge"}}); err == nil || !strings.Contains(err.Error(), world.EdgeExclusive) {
		t.Errorf("an unknown quirk: %v", err)
	}
	on := func(quirk string) slowapitest.API {
		return slowapitest.Start(t, slowapi.Options{Records: 60, Quirks: []string{quirk}})
	}
	status := func(r slowapitest.API, target string) int {
		code, _, _ := r.Ask("GET", root+target, nil)
		return code
	}
	if got := status(on(world.OperatorRefused), "/Messages.json?DateSent=%3E%3D2019-08-08"); got != 400 {
		t.Errorf("%s: %d", world.OperatorRefused, got)
	}
	if got := status(on(world.SizeRefused), "/Calls.json?PageSize=1001"); got != 400 {
		t.Errorf("%s: %d", world.SizeRefused, got)
	}
	if p := on(world.SizeForgiven).Page(root + "/Calls.json?PageSize=zero"); p.Size != 50 {
		t.Errorf("%s: %+v", world.SizeForgiven, p)
	}
	if got := status(on(world.Retention), "/Messages.json?DateSent%3E=2020-01-01"); got != 400 {
		t.Errorf("%s: %d", world.Retention, got)
	}
	r := on(world.PageIgnored)
	if p := r.Page(root + "/Calls.json?Page=1"); p.Page != 1 || p.Records.SIDs()[0] != r.Page(root + "/Calls.json").Records.SIDs()[0] {
		t.Errorf("%s: %+v", world.PageIgnored, p)
	}
	r = on(world.UnfinishedRefused)
	calls := r.Page(root + "/Calls.json").Records.SIDs()
	r.Write("DELETE", root+"/Calls/"+calls[0]+".json", nil, 409)
	r.Write("DELETE", root+"/Calls/"+calls[40]+".json", nil, 204)
	messages := r.Page(root + "/Messages.json").Records.SIDs()
	r.Write("POST", root+"/Messages/"+messages[0]+".json", url.Values{"Body": {""}}, 409)
	r.Write("POST", root+"/Messages/"+messages[40]+".json", url.Values{"Body": {""}}, 200)
}
