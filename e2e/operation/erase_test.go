// Erasing: what is deleted, redacted, erased or too old is in no byte of the
// data folder, packed or not, also when the server is killed meanwhile.

package operation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/diagnostics"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/spec"
	"understudy/upstream"
)

// eraseSettings erase at once.
const eraseSettings = "{newest: 1ms, older: 1ms, default_age: 1ms, settled_age: 1ms, stale: 1ms}\nstore: {erase_after: 50ms}"

// marked is a person with a text of their own: nothing else in the world says
// either.
type marked struct {
	number, text, sid string
}

// erasure is a server whose folder is searched.
type erasure struct {
	*testing.T
	up, dir string
	server  *binary.Server
	rng     *rand.Rand
	own     string // a number that may send
}

func newWard(t *testing.T) *erasure {
	w := &erasure{T: t, rng: rig.Random(t)}
	w.up = rig.StartAPI(t, "--latency", "2ms", "--records", "400").URL("slowapi")
	first, dir := rig.StartServer(t, rig.Settings{Upstream: w.up, Mirror: eraseSettings, Source: "media: [recordings, media]"})
	w.dir = dir
	var page struct {
		Numbers []struct {
			Number string `json:"phone_number"`
		} `json:"incoming_phone_numbers"`
	}
	w.decode(w.ask(first, rig.Base+"/IncomingPhoneNumbers.json"), &page)
	if len(page.Numbers) == 0 {
		t.Fatal("no numbers")
	}
	w.own = page.Numbers[0].Number
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	w.start()
	t.Cleanup(func() { w.server.Kill() })
	return w
}

func (w *erasure) start() {
	w.Helper()
	rig.ChooseLane(w, w.dir)
	house, err := binary.Start(rig.Program, w.dir, "serve")
	if err != nil {
		w.Fatal(err)
	}
	w.server = house
}

func (w *erasure) ask(house *binary.Server, path string) rig.Reply {
	w.Helper()
	r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, house.URL("twilio")+path, "", "Cache-Control", "no-cache")
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *erasure) read(path string) rig.Reply { w.Helper(); return w.ask(w.server, path) }

func (w *erasure) decode(r rig.Reply, into any) {
	w.Helper()
	if err := json.Unmarshal(r.Body, into); err != nil {
		w.Fatalf("%d %s: %v", r.Status, rig.Tail(string(r.Body), 400), err)
	}
}

// letters are text that nothing else in the world has.
func (w *erasure) letters(n int) string {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	b := make([]byte, n)
	for i := range b {
		b[i] = all[w.rng.IntN(len(all))]
	}
	return string(b)
}

// send makes a message of a new person, upstream and here.
func (w *erasure) send() marked {
	w.Helper()
	m := marked{number: fmt.Sprintf("+1907%07d", 2_000_000+w.rng.IntN(7_000_000)), text: "marker " + w.letters(40)}
	form := url.Values{"To": {m.number}, "From": {w.own}, "Body": {m.text}}
	r, err := rig.Ask("POST", rig.Account+":"+rig.DemoToken, w.server.URL("twilio")+rig.Base+"/Messages.json", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if err != nil || r.Status != 201 {
		w.Fatalf("send: %v, %d %s", err, r.Status, r.Body)
	}
	var sent struct {
		SID string `json:"sid"`
	}
	w.decode(r, &sent)
	m.sid = sent.SID
	return m
}

// look has pages of all sorts stored that show, name or echo a person.
func (w *erasure) look(all ...marked) {
	w.Helper()
	for _, size := range []int{7, 20, 50} {
		w.read(rig.Base + "/Messages.json?PageSize=" + strconv.Itoa(size))
	}
	for _, m := range all {
		for _, path := range []string{"/Messages.json?To=" + url.QueryEscape(m.number), "/Calls.json?From=" + url.QueryEscape(m.number),
			"/Messages/" + m.sid + ".json", "/Messages/" + m.sid + "/Media.json"} {
			if r := w.read(rig.Base + path); r.Status != 200 {
				w.Fatalf("%s: %d", path, r.Status)
			}
		}
	}
}

// edit changes a record upstream. The server gets no notification of it.
func (w *erasure) edit(sid, change string) {
	w.Helper()
	r, err := rig.Ask("POST", "", w.up+"/-/edit", fmt.Sprintf(`{"kind":"messages","records":[{"sid":%q,%s}]}`, sid, change))
	if err != nil || r.Status != 200 {
		w.Fatalf("edit: %v, %d %s", err, r.Status, r.Body)
	}
}

// receipts waits until nothing is left to be erased.
func (w *erasure) receipts() diagnostics.Receipts {
	w.Helper()
	for end := time.Now().Add(rig.Patience); ; time.Sleep(20 * time.Millisecond) {
		var all diagnostics.Receipts
		w.decode(rig.Get(w, rig.Account+":"+rig.DemoToken, w.server.URL("viewer")+"/-/erasures"), &all)
		open := all.Waiting.Records > 0
		for _, e := range all.Erasures {
			open = open || e.Done.IsZero()
		}
		switch {
		case !open:
			return all
		case time.Now().After(end):
			w.Fatalf("still waiting: %+v\n%s", all, rig.Tail(w.server.Log(), 2000))
		}
	}
}

// bytesHold says which files of the folder hold a text, as it is or in UTF-16.
func (w *erasure) bytesHold(texts ...string) (found []string) {
	w.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, rig.DataFolder), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return nil
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // a file that was renamed, or removed, meanwhile
			return nil
		}
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(strings.TrimPrefix(text, "+"))) {
				found = append(found, filepath.Base(path)+": "+text)
			}
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// packedHold says where the database holds a text, everything unpacked.
func (w *erasure) packedHold(texts ...string) []string {
	w.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		w.Fatal(err)
	}
	db, err := store.Open(w.Context(), store.Options{Path: filepath.Join(w.dir, rig.DataFolder, "understudy.db"), Specs: map[string]*spec.Spec{"twilio": sp}})
	if err != nil {
		w.Fatal(err)
	}
	defer db.Close()
	found, err := db.Verifier.FindTexts(w.Context(), texts...)
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// nowhere fails when a text is anywhere.
func (w *erasure) nowhere(when string, texts ...string) {
	w.Helper()
	if found := append(w.bytesHold(texts...), w.packedHold(texts...)...); len(found) > 0 {
		w.Fatalf("%s: %s", when, strings.Join(found, "\n"))
	}
}

// somewhere fails when a text is not held: then the search would find nothing.
func (w *erasure) somewhere(texts ...string) {
	w.Helper()
	for _, text := range texts {
		if len(w.packedHold(text)) == 0 {
			w.Fatalf("%s is not held; the search proves nothing", text)
		}
	}
}

func (w *erasure) command(args ...string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, rig.Program, args...)
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("understudy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestErased(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	deleted, redacted, asked, stays := w.send(), w.send(), w.send(), w.send()
	all := []marked{deleted, redacted, asked, stays}
	w.look(all...)
	for _, price := range []string{"-0.01", "-0.02"} { // three versions of each
		for _, m := range all {
			w.edit(m.sid, `"price":"`+price+`"`)
		}
		w.look(all...)
	}
	for _, m := range all {
		w.somewhere(m.text, m.number)
	}

	w.edit(deleted.sid, `"delete":true`)
	if r := w.read(rig.Base + "/Messages/" + deleted.sid + ".json"); r.Status != 404 {
		t.Fatalf("the deleted one: %d", r.Status)
	}
	w.edit(redacted.sid, `"body":""`)
	w.read(rig.Base + "/Messages/" + redacted.sid + ".json")
	out := w.command("erase", "twilio", asked.number, "--yes", "--data", rig.DataFolder)
	if !strings.Contains(out, "erased 1 messages") {
		t.Fatalf("it said:\n%s", out)
	}
	causes := map[string]int64{}
	for _, e := range w.receipts().Erasures {
		causes[e.Cause] += e.Records
		if e.Versions < 3 || e.Pages == 0 {
			t.Errorf("receipt %+v: at least three versions and a page", e)
		}
	}
	checktest.Equal(t, causes["deleted"], 1, `records by cause: causes["deleted"]`)
	checktest.Equal(t, causes["redacted"], 1, `records by cause: causes["redacted"]`)
	checktest.Equal(t, causes["asked"], 1, `records by cause: causes["asked"]`)
	gone := []string{deleted.text, deleted.number, redacted.text, asked.text, asked.number}
	w.nowhere("while the server runs", gone...)
	w.somewhere(stays.text, stays.number, redacted.number)

	// Upstream still shows the one a person asked for: it passes.
	r := w.read(rig.Base + "/Messages.json?PageSize=20")
	if !bytes.Contains(r.Body, []byte(asked.text)) || !strings.Contains(r.Header.Get("Cache-Status"), "not stored: erased") {
		t.Errorf("%s", r.Header.Get("Cache-Status"))
	}
	w.nowhere("after it was read again", asked.text, asked.number)
	w.server.Kill()
	w.nowhere("after a kill", gone...)
	if out := w.command("store", "verify", "--data", rig.DataFolder); !strings.Contains(out, "no damage found") {
		t.Errorf("verify: %s", out)
	}
	w.start()
	w.nowhere("after a restart", gone...)
	w.somewhere(stays.text)
}

// killErasures is a fiftieth of the full count.
const killErasures = 6

// TestKillErasing kills the server at random points while it erases; after the
// restart all that was listed is erased.
func TestKillErasing(t *testing.T) {
	t.Parallel()
	kills := sample.CountFrom("PROVE_ERASE_KILLS", killErasures)
	w, asked := newWard(t), 0
	for range kills {
		var all []marked
		for range 3 {
			all = append(all, w.send())
		}
		w.look(all...)
		w.edit(all[0].sid, `"delete":true`)
		w.read(rig.Base + "/Messages/" + all[0].sid + ".json") // listed when it is answered
		listed := []string{all[0].text, all[0].number}
		former := w.lastAsked()
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, rig.Program, "erase", "twilio", all[1].number, "--yes", "--data", rig.DataFolder)
		cmd.Dir = w.dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(w.rng.IntN(120_000)) * time.Microsecond) // the kill's random point
		w.server.Kill()
		cancel()
		_ = cmd.Wait() // killed, or it could not reach the server
		w.start()
		if w.lastAsked() > former {
			listed = append(listed, all[1].text, all[1].number)
			asked++
		}
		w.nowhere("after a kill and a restart", listed...)
		w.somewhere(all[2].text)
	}
	if out := w.command("erase", "--list", "--data", rig.DataFolder); !strings.Contains(out, "deleted") {
		t.Errorf("receipts:\n%s", out)
	}
	t.Logf("%d kills while erasing, %d after a person was listed", kills, asked)
}

// lastAsked returns the number of the newest receipt of an erasure that was requested for a person.
func (w *erasure) lastAsked() int64 {
	for _, r := range w.receipts().Erasures {
		if r.Cause == "asked" {
			return r.Number
		}
	}
	return 0
}

// L2: redacted data is shown only to a role that sees everything. Others see the
// version after it instead, as in the viewer's timelines.
func TestRedactedIsNotToldByAsOf(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	redacted, stays := w.send(), w.send()
	w.look(redacted, stays)
	then := "understudy.as_of=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))
	w.edit(redacted.sid, `"body":""`)
	w.read(rig.Base + "/Messages/" + redacted.sid + ".json")
	w.receipts() // it is erased
	answers := func(user, path string) string {
		r := rig.Get(t, user, w.server.URL("twilio")+rig.Base+path+then)
		return fmt.Sprint(r.Status, strings.Count(string(r.Body), redacted.sid) > 0, strings.Count(string(r.Body), stays.sid) > 0)
	}
	for _, c := range []struct{ user, path, want string }{
		{rig.Account + ":" + rig.MaskedToken, "/Messages/" + redacted.sid + ".json?", "200 true false"},
		{rig.Account + ":" + rig.MaskedToken, "/Messages/" + stays.sid + ".json?", "200 false true"},
		{rig.Account + ":" + rig.MaskedToken, "/Messages.json?PageSize=9&", "200 true true"},
		{rig.Account + ":" + rig.DemoToken, "/Messages/" + redacted.sid + ".json?", "404 true false"},
		{rig.Account + ":" + rig.DemoToken, "/Messages.json?PageSize=9&", "200 false true"},
	} {
		if got := answers(c.user, c.path); got != c.want {
			t.Errorf("%.9s %s: %s, want %s", c.user[len(rig.Account)+1:], c.path, got, c.want)
		}
	}
}
