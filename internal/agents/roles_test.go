// Tests of what a role gets, and of what is listed of it.

package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// A role is offered what it sees. Nothing else is named, and what it sees is masked.
func TestRoles(t *testing.T) {
	r := newRig(t, nil)
	fill(r, "Calls", "Messages")
	all, support, calls, none := r.as("all"), r.as("support"), r.as("calls"), r.as("none")
	if len(none.tools) != 0 {
		t.Errorf("a role that sees nothing has %d tools", len(none.tools))
	}
	for name, tool := range calls.tools {
		schema, _ := json.Marshal(tool)
		for _, hidden := range []string{"messages", "recordings", "conferences", "incoming_phone_numbers", "DateSent", `"To"`, "price_unit"} {
			if strings.Contains(string(schema), hidden) && (hidden != "price_unit" || name != "describe") {
				t.Errorf("the tool %s of a role that sees calls less their to names %s: %s", name, hidden, schema)
			}
		}
	}
	var of describeAnswer
	calls.must("describe", map[string]any{"kind": "calls"}, &of)
	for _, f := range of.Fields {
		if f.Name == "to" || f.Name == "to_formatted" {
			t.Errorf("a hidden field is described: %+v", f)
		}
	}
	for _, one := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"list", map[string]any{"kind": "messages"}, "no kind"},
		{"list", map[string]any{"kind": "calls", "filters": map[string]any{"To": "+1"}}, "may not use the filter To"},
		{"search", map[string]any{"query": "to:5"}, "character 1"},
		{"search", map[string]any{"kinds": []string{"messages"}}, "no kind"},
		{"search", map[string]any{"sort": "to"}, "to"},
		{"sums", map[string]any{"by": []string{"to"}}, "to"},
		{"sums", map[string]any{"kinds": []string{"messages"}}, "no kind"},
	} {
		if said := calls.call(one.tool, one.args, new(any)); !strings.Contains(said, one.want) {
			t.Errorf("%s %v says %q, want %q", one.tool, one.args, said, one.want)
		}
	}
	var whole, masked readAnswer
	all.must("list", map[string]any{"kind": "messages"}, &whole)
	support.must("list", map[string]any{"kind": "messages"}, &masked)
	var open, seen []struct{ Body, From *string }
	must(t, json.Unmarshal([]byte(join(whole.Records)), &open))
	must(t, json.Unmarshal([]byte(join(masked.Records)), &seen))
	for i := range seen {
		checktest.MustTrue(t, seen[i].Body == nil, "support sees: seen[i].Body is %v", seen[i].Body)
		checktest.True(t, *seen[i].From != *open[i].From, "support sees: *seen[i].From is %v", *seen[i].From)
		checktest.True(t, strings.HasPrefix(*seen[i].From, "*"), "support sees: *seen[i].From is %q", *seen[i].From)
		if open[i].Body == nil {
			t.Error("all does not see the text of a message")
		}
	}
	// A cursor is of its role.
	if said := calls.call("list", map[string]any{"kind": "calls", "cursor": whole.Next}, new(any)); !strings.Contains(said,
		"not of this list") {
		t.Errorf("the cursor of another role: %q", said)
	}
}

func join(records []json.RawMessage) string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = string(r)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// Every answer is listed before it is given: who, what, of which records. One that cannot
// be listed is not given.
func TestAudit(t *testing.T) {
	r := newRig(t, nil)
	fill(r, "Calls")
	a := r.as("support")
	var list readAnswer
	a.must("list", map[string]any{"kind": "calls", "limit": 2, "filters": map[string]any{"Status": "completed"}}, &list)
	id := sidOf(t, list.Records[0])
	a.must("get", map[string]any{"kind": "calls", "id": id}, new(any))
	a.must("history", map[string]any{"kind": "calls", "id": id}, new(any))
	a.must("as_of", map[string]any{"kind": "calls", "id": id, "at": time.Now().UTC().Format(time.RFC3339Nano)}, new(any))
	a.must("as_of", map[string]any{"kind": "calls", "limit": 1, "at": time.Now().UTC().Format(time.RFC3339Nano)}, new(any))
	a.must("search", map[string]any{"query": "status:completed", "limit": 2}, new(any))
	a.must("sums", map[string]any{"query": "status:completed", "kinds": []string{"calls"}, "by": []string{"direction"}}, new(any))
	var said []string
	for _, e := range r.log.take() {
		checktest.Equal(t, e.Caller.Name, "support", "listed: e.Caller.Name")
		checktest.True(t, e.What != "", "listed: e.What is empty")
		checktest.Lacks(t, e.What, id, "listed: e.What")
		said = append(said, fmt.Sprint(e.Action, " ", e.Kind, " ", len(e.IDs), " ", e.Rows, " ", e.Values))
	}
	want := []string{"search calls 2 2 [completed]", "record calls 1 1 []", "record calls 1 1 []", "record calls 1 1 []",
		"export calls 1 1 []", "search  2 2 [status:completed]", "search  0 3 [status:completed]"}
	if !slices.Equal(said, want) {
		t.Errorf("listed %q, want %q", said, want)
	}
	r.log.fail(fmt.Errorf("disk full: %w", understudy.ErrNotAudited))
	for tool, args := range map[string]map[string]any{
		"list": {"kind": "calls"}, "get": {"kind": "calls", "id": id}, "history": {"kind": "calls", "id": id}, "search": {"query": ""},
		"sums":  {"query": ""},
		"as_of": {"kind": "calls", "id": id, "at": time.Now().UTC().Format(time.RFC3339Nano)},
	} {
		if said := a.call(tool, args, new(any)); !strings.Contains(said, "audit log cannot be written") || strings.Contains(said, "disk") {
			t.Errorf("%s answers %q", tool, said)
		}
	}
	r.log.fail(nil)
	a.must("list", map[string]any{"kind": "calls"}, new(any))
}

// What goes wrong inside is logged and not told.
func TestInside(t *testing.T) {
	broken := errors.New("page 7 of the file is broken")
	r := newRig(t, func(o *Options) { o.Search = nil; o.Audit = &auditLog{err: broken} })
	fill(r, "Calls")
	a := r.as("all")
	if a.tools["search"] != nil {
		t.Error("there is a tool that searches, and nothing to search with")
	}
	said := a.call("list", map[string]any{"kind": "calls"}, new(any))
	if strings.Contains(said, "broken") || !strings.Contains(said, "log of the server") {
		t.Errorf("says %q", said)
	}
}
