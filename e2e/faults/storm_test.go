// The storm of the soak: what goes wrong, and what changes, while clients ask.

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"understudy/e2e/rig"
)

// storm changes the faults every second until ctx ends, and tells how much the
// process held each time. Half of the seconds are good ones, or nothing would be
// fetched: after a time without an answer upstream is hardly asked. In the third and the
// fourth all requests fail, so that a short run has refusals, too; now and then upstream
// is away for some seconds.
func (s *soak) storm(ctx context.Context, chance *rand.Rand) (samples []holding) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	away := 0 // for so many seconds more
	for second := 0; ; second++ {
		rules := rulesOf(chance)
		switch {
		case away > 0:
			away--
			rules = `{"rules":[{"reset":true}]}`
		case second == 0 || second%2 == 0 && second > 2:
			rules = `{"rules":[]}`
		case second == 2 || second == 3 || chance.IntN(20) == 0:
			rules = `{"rules":[{"status":502}]}`
		case chance.IntN(30) == 0:
			away = chance.IntN(6)
		}
		rig.Control(s.TB, s.truths.up, "/-/faults", rules)
		samples = append(samples, s.held())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return samples
		}
	}
}

// rulesOf are the faults of one second; in every third all is well. What is no
// fault but a lie, a whole document that says something else, is not among
// them: it is passed on as upstream's word.
func rulesOf(chance *rand.Rand) string {
	n := chance.IntN(3)
	rules := make([]string, 0, n)
	for range n {
		match := []string{"", "", "/Calls", "/Messages", "PageSize=1", "Status="}[chance.IntN(6)]
		faults := []string{
			`"status":500`, `"status":502`, `"status":503,"retry_after":1`, `"status":504`, `"status":429,"retry_after":1`, `"status":401,"times":3`, `"status":403,"times":3`,
			`"reset":true`, `"delay_ms":300`, `"delay_ms":3000`, fmt.Sprintf(`"stall_after":%d`, chance.IntN(3000)),
			fmt.Sprintf(`"truncate":%d`, chance.IntN(2000)), fmt.Sprintf(`"truncate":%d,"reset":true`, chance.IntN(2000)),
			fmt.Sprintf(`"gzip_cut":%d`, 1+chance.IntN(300)), `"length":7`, `"length":-7`,
			`"body":""`, `"body":"{\"calls\":[{]}"`, `"body":"<html>oops</html>","content_type":"text/html"`,
			`"status":502,"body":"<html>bad gateway</html>","content_type":"text/html"`,
			`"redirect":"loop"`, `"redirect":"http://127.0.0.1:1/"`, `"pad_mb":2`,
		}
		times := ""
		if fault := faults[chance.IntN(len(faults))]; chance.IntN(3) == 0 && !strings.Contains(fault, "times") {
			times = fmt.Sprintf(`,"times":%d`, 1+chance.IntN(20))
			rules = append(rules, fmt.Sprintf(`{"match":%q,%s%s}`, match, fault, times))
		} else {
			rules = append(rules, fmt.Sprintf(`{"match":%q,%s}`, match, fault))
		}
	}
	return `{"rules":[` + strings.Join(rules, ",") + `]}`
}

// changes lets records come, change and go, most of them by writes that clients make here,
// and asks for what was written as soon as that is acknowledged.
func (s *soak) changes(ctx context.Context, chance *rand.Rand) {
	reader := s.asker(1, chance)
	defer reader.line.close()
	own := map[string][]string{} // by kind: paths of records that were made here
	for ctx.Err() == nil {
		rig.Pause(ctx, time.Duration(chance.IntN(400))*time.Millisecond)
		if chance.IntN(5) == 0 {
			s.move(chance)
			continue
		}
		method, path, kind, fields := s.writeOf(chance, own)
		acknowledged := false
		s.truths.change(path, func() bool {
			r, err := rig.Ask(method, "writer:"+rig.DemoToken, s.server.URL("twilio")+path, fields.Encode())
			acknowledged = err == nil && r.Status < 300
			var made struct{ URI string }
			if r.Status == http.StatusCreated && json.Unmarshal(r.Body, &made) == nil {
				own[kind] = append(own[kind], made.URI)
			}
			return acknowledged
		}, kind)
		if !acknowledged {
			s.unknown.Add(1)
			continue
		}
		s.acknowledged.Add(1)
		for _, k := range s.truths.keys { // what one reads who has just written
			if k.path == path || k.list && k.kind == kind && chance.IntN(20) == 0 {
				reader.sent, reader.out = reader.sent[:0], reader.out[:0]
				reader.write(question{form: form{of: k, as: s.all}, method: http.MethodGet}, "")
				s.answers.Add(int64(reader.ask()))
			}
		}
	}
}

// move changes something without the server: it learns of it as its answers grow old.
func (s *soak) move(chance *rand.Rand) {
	s.moved.Add(1)
	if chance.IntN(2) == 0 {
		s.truths.change("", func() bool {
			rig.Control(s.TB, s.truths.up, "/-/advance", fmt.Sprintf(`{"calls":%d,"messages":%d,"seconds":%d}`,
				chance.IntN(3), chance.IntN(3), chance.IntN(100)))
			return false
		}, "calls", "messages")
		return
	}
	kind := []string{"calls", "messages"}[chance.IntN(2)]
	s.truths.change("", func() bool {
		edit := fmt.Sprintf(`{"kind":%q,"records":[{"index":%d,"price":"-0.%05d"}]}`, kind, chance.IntN(3000), chance.IntN(100_000))
		r, err := rig.Ask(http.MethodPost, "", s.truths.up+"/-/edit", edit)
		if err != nil || r.Status != http.StatusOK && !bytes.Contains(r.Body, []byte("was deleted")) {
			s.Errorf("edit %s: %v, %d %s", edit, err, r.Status, r.Body)
		}
		return false
	}, kind)
}

// writeOf is one write: as many records are made as deleted, and those that clients ask
// for are changed now and then.
func (s *soak) writeOf(chance *rand.Rand, own map[string][]string) (method, path, kind string, fields url.Values) {
	kind = []string{"messages", "messages", "calls"}[chance.IntN(3)]
	switch n := chance.IntN(20); {
	case n < 6 && kind == "messages":
		return http.MethodPost, rig.Base + "/Messages.json", kind,
			url.Values{"From": {rig.OwnNumber}, "To": {"+14155550199"}, "Body": {fmt.Sprintf("number %d", chance.Uint32())}}
	case n < 6:
		return http.MethodPost, rig.Base + "/Calls.json", kind, url.Values{"From": {rig.OwnNumber}, "To": {"+14155550199"}, "Url": {"http://example.com/"}}
	case n < 12 && len(own[kind]) > 0:
		path, own[kind] = own[kind][0], own[kind][1:]
		return http.MethodDelete, path, kind, nil
	}
	for {
		k := s.truths.keys[chance.IntN(len(s.truths.keys))]
		switch {
		case k.list:
		case k.kind == "incoming_phone_numbers":
			return http.MethodPost, k.path, k.kind, url.Values{"FriendlyName": {fmt.Sprintf("line %d", chance.IntN(100_000))}}
		case k.kind == "messages" && chance.IntN(2) == 0:
			return http.MethodPost, k.path, k.kind, url.Values{"Body": {""}}
		case chance.IntN(50) == 0:
			return http.MethodDelete, k.path, k.kind, nil
		}
	}
}

// order sends a command of this machine.
func (s *soak) order(path, body string) rig.Reply {
	s.Helper()
	r, err := rig.Ask(http.MethodPost, "", s.server.URL("viewer")+path, body, "Authorization", "Bearer "+s.token, "Content-Type", "application/json")
	if err != nil || r.Status != http.StatusOK {
		s.Fatalf("POST %s %s: %d %s %v", path, body, r.Status, r.Body, err)
	}
	return r
}

// make makes a credential.
func (s *soak) make(role string) *login {
	s.Helper()
	r := s.order("/-/credentials", fmt.Sprintf(`{"name":"soak","source":"twilio","role":%q}`, role))
	var made struct{ User, Secret string }
	if err := json.Unmarshal(r.Body, &made); err != nil || made.Secret == "" {
		s.Fatalf("%s: %v", r.Body, err)
	}
	s.credentialsMade.Add(1)
	if role == "all" {
		return loginOf(made.User, made.Secret, 0)
	}
	return loginOf(made.User, made.Secret)
}

// revocations revokes the credential that was made, which clients go on to use for a
// moment, and makes another.
func (s *soak) revocations(ctx context.Context, chance *rand.Rand) {
	for ctx.Err() == nil {
		rig.Pause(ctx, time.Duration(500+chance.IntN(4000))*time.Millisecond)
		was := s.made.Load()
		was.ending.Store(s.truths.now())
		s.order("/-/credentials/soak/revoke", "{}")
		was.ended.Store(s.truths.now())
		rig.Pause(ctx, 50*time.Millisecond)
		s.made.Store(s.make([]string{"all", "support"}[chance.IntN(2)]))
	}
}

// reloads changes what the role support sees, and back, by settings that are read again.
func (s *soak) reloads(ctx context.Context, chance *rand.Rand) {
	file := filepath.Join(s.dir, "understudy.yml")
	whole, err := os.ReadFile(file)
	if err != nil {
		s.Error(err)
		return
	}
	for n := int64(1); ctx.Err() == nil; n++ {
		rig.Pause(ctx, time.Duration(1000+chance.IntN(3000))*time.Millisecond)
		text := string(whole)
		if n%maskedViews == 1 {
			text = strings.Replace(text, "body: hide", "body: see", 1)
		}
		s.policy.Store(-1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.Error(err)
			return
		}
		s.order("/-/reload", "")
		s.policy.Store(n)
		s.policies.Add(1)
	}
}

// purges has something forgotten now and then.
func (s *soak) purges(ctx context.Context, chance *rand.Rand) {
	id := regexp.MustCompile(`[A-Z]{2}[0-9a-f]{32}\.json$`)
	for ctx.Err() == nil {
		rig.Pause(ctx, time.Duration(500+chance.IntN(2000))*time.Millisecond)
		k := s.truths.keys[chance.IntN(len(s.truths.keys))]
		what := k.path
		if !k.list && chance.IntN(2) == 0 {
			what = k.kind + "/" + strings.TrimSuffix(id.FindString(k.path), ".json")
		}
		s.order("/-/purge", fmt.Sprintf(`{"source":"twilio","what":%q}`, what))
		s.purged.Add(1)
	}
}
