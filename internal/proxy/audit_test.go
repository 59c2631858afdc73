package proxy

import (
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

// Every read of a program tells the audit log what was read, also a page behind the newest one, a question that a 304
// answers, and HEAD. The log lists or counts it; a walk is never an export.
func TestEveryReadOfAProgramIsTold(t *testing.T) {
	b := newBed(t)
	log := &listing{}
	b.Proxy.o.Audit = log
	for _, c := range []struct {
		method, path string
		list         bool
		want         understudy.Action
	}{
		{"GET", "/Messages.json", true, understudy.ActionList},
		{"HEAD", "/Messages.json", true, understudy.ActionList},
		{"GET", "/Messages.json?PageSize=50&Page=1&PageToken=PASM1", true, understudy.ActionList},
		{"GET", "/Messages.json?PageSize=1000", true, understudy.ActionList},
		{"GET", "/Messages.json?To=%2B14155550123", true, understudy.ActionSearch},
		{"GET", "/Messages/SM00000000000000000000000000000001.json", false, understudy.ActionRecord},
	} {
		b.answers(page("messages", c.list, 200, oneMessage))
		log.all = nil
		first := b.ask(c.method, root+c.path, demo)
		b.ask(c.method, root+c.path, demo, "If-None-Match", first.Header().Get("ETag"))
		if len(log.all) != 2 {
			t.Fatalf("%s %s: %d with status %d, want an entry each time: %+v", c.method, c.path, len(log.all), first.Code, log.all)
		}
		for _, e := range log.all {
			checktest.Equal(t, e.Action, c.want, "%s %s: e.Action", c.method, c.path)
			checktest.Equal(t, e.Kind, "messages", "%s %s: e.Kind", c.method, c.path)
			checktest.True(t, e.Caller.Name != "", "%s %s: e.Caller.Name is empty", c.method, c.path)
		}
	}
}
