// Records: random list requests, answered from records by the whole product
// and by upstream itself, compared byte for byte.

package answers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/kit/jsonspan"
	"understudy/mirror/compose/composetest"
	"understudy/spec"
	"understudy/upstream"
)

// listsUsual is how many list requests are compared; the full count is fifty
// times that.
const listsUsual = 400

// stage is a simulated API and a server in front of it that answers from
// records; both can be begun anew in their folders.
type stage struct {
	*testing.T
	dir, apiDir string
	epoch       string // of the world, near the clock of the server
	api, server *binary.Server
	up, through string
	spec        *spec.Spec
	world       *composetest.World
	draw        *composetest.Generator
	rng         *rand.Rand

	asked, composed int
	walked, across  int            // by a token; in a walk from before both were begun anew
	reasons         map[string]int // of those that were not composed
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, dir: t.TempDir(), apiDir: t.TempDir(), rng: rig.Random(t), reasons: map[string]int{}, epoch: time.Now().UTC().Format(time.RFC3339)}
	s.startAPI("127.0.0.1:0")
	files := map[string]string{"twilio.token": rig.APIToken, "demo.secret": rig.DemoToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  twilio: {spec: twilio, upstream: "` + s.up + `", user: ` + rig.Account + `, secret: "file:twilio.token", listen: "127.0.0.1:0", public_url: "` + rig.PublicURL + `", rate: 2000, concurrency: 50, polls: [], lists_from: records, ` + rig.SyncSetting(t) + `}
credentials:
  - {name: demo, source: twilio, user: ` + rig.Account + `, secret: "file:demo.secret", role: all}
mirror: {newest: 2s}
sync: {sweep: 15s}
log: {access: access.log}
`}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.startHouse()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	s.spec = sp
	src := &spec.Source{Name: "twilio", Spec: sp, User: rig.Account, PublicURL: rig.PublicURL}
	s.others()
	if s.world, err = composetest.New(src, 10, s.directly); err != nil {
		t.Fatal(err)
	}
	s.draw = composetest.NewGenerator(s.world, s.rng.Uint64())
	rig.AwaitMirrored(t, s.server.URL("viewer"))
	return s
}

func (s *stage) startAPI(listen string) {
	s.Helper()
	s.api = rig.Start(s.T, s.apiDir, "slowapi", "--listen", listen, "--latency", "0s", "--records", "300", "--journal", filepath.Join(s.apiDir, "journal"), "--epoch", s.epoch)
	s.up = s.api.URL("slowapi")
}

func (s *stage) startHouse() {
	s.Helper()
	s.server = rig.Start(s.T, s.dir, "serve")
	s.through = s.server.URL("twilio")
}

// again ends both and begins them anew.
func (s *stage) again() {
	s.Helper()
	for _, b := range []*binary.Server{s.server, s.api} {
		if err := b.Stop(); err != nil {
			s.Fatal(err)
		}
	}
	s.startAPI(strings.TrimPrefix(s.up, "http://"))
	s.startHouse()
	rig.AwaitMirrored(s.T, s.server.URL("viewer"))
}

// others creates keys for the accounts below the main one, and reads the keys
// through the server. The keys do not name their account.
func (s *stage) others() {
	s.Helper()
	_, body, err := s.directly("/2010-04-01/Accounts.json")
	if err != nil {
		s.Fatal(err)
	}
	for _, sid := range regexp.MustCompile(`"sid":"(AC[0-9a-f]+)"`).FindAllSubmatch(body, -1) {
		list := "/2010-04-01/Accounts/" + string(sid[1]) + "/Keys.json"
		if string(sid[1]) == rig.Account {
			continue
		}
		if r, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.APIToken, s.up+list, "FriendlyName=other"); err != nil || r.Status != http.StatusCreated {
			s.Fatalf("a key of its own: %d %v %s", r.Status, err, r.Body)
		}
		{
			r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, s.through+list, "")
			checktest.MustNoError(s, err, "a key of another account")
			checktest.MustEqual(s, r.Status, http.StatusOK, "a key of another account: r.Status")
			checktest.MustTrue(s, bytes.Contains(r.Body, []byte("other")),
				`a key of another account: bytes.Contains(r.Body, []byte("other")) is false`)
		}
	}
}

// directly returns upstream's response, with its address replaced by the server's.
func (s *stage) directly(target string) (int, []byte, error) {
	r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.APIToken, s.up+target, "")
	return r.Status, rig.AuthToken.ReplaceAll(bytes.ReplaceAll(r.Body, []byte(s.up), []byte(rig.PublicURL)), []byte(`$1""`)), err
}

// compare asks both for one target; next is the list's next page.
func (s *stage) compare(target, why string) (next string) {
	s.Helper()
	s.asked++
	status, want, err := s.directly(target)
	if err != nil {
		s.Fatal(err)
	}
	r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, s.through+target, "")
	if err != nil {
		s.Fatal(err)
	}
	how := strings.Join(r.Header["Cache-Status"], " ")
	if strings.Contains(how, "ttl=-") { // it says by itself that it is old
		s.reasons["old"]++
		if r, err = rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, s.through+target, "", "Cache-Control", "no-cache"); err != nil {
			s.Fatal(err)
		}
	}
	if r.Status != status || !bytes.Equal(r.Body, want) {
		s.Fatalf("%s: %d, want %d (%s; %s)\n%s\nseed above; %d requests were equal", target, r.Status, status, how, why, rig.FirstDifference(want, r.Body), s.asked-1)
	}
	if strings.Contains(how, "composed") {
		s.composed++
	} else if !strings.Contains(how, "hit;") { // what is held and fresh is as good
		s.reasons[cmp.Or(why, s.apart(target), "no good reason")]++
	}
	if status != http.StatusOK {
		return ""
	}
	doc, err := jsonspan.Parse(want)
	if err != nil {
		s.Fatal(err)
	}
	for _, name := range []string{"next_page_uri", "meta.next_page_url"} {
		if v, ok := jsonspan.Find(want, doc, name); ok && v.Kind == jsonspan.String {
			next = strings.TrimPrefix(jsonspan.Text(want, v), rig.PublicURL)
		}
	}
	return next
}

// apart returns why the records of a list cannot all be held: its rows have data
// that only this list shows, or the list belongs to another account.
func (s *stage) apart(target string) string {
	s.Helper()
	t, err := s.spec.ResolveLink("twilio", target)
	switch {
	case err != nil:
		s.Fatal(err)
	case t.List == nil || t.List.Rows != nil && t.List.Rows.AsSeen:
		return "rows that say more than those of the list of all"
	case strings.Contains(t.List.Path, "{AccountSid}") && !strings.Contains(t.Key.URI, rig.Account):
		return "the account below, which is not walked"
	}
	return ""
}

// round compares n requests: half of them are asked for by themselves, half go
// on by the token of the page before, half of these in walks that were begun
// before both were begun anew.
func (s *stage) round(n int) {
	s.Helper()
	var later []string
	for fresh, walked := 0, 0; fresh < n/2 || fresh < n && (walked < n/4 || len(later) < n/12); fresh++ {
		req := s.draw.Request()
		next := s.compare(req.Target, req.Unsure)
		switch {
		case next == "":
		case s.rng.IntN(2) == 0:
			later = append(later, next)
		default:
			walked += s.walk(next, min(40, fresh/2+2-walked))
		}
	}
	s.again()
	for left := n / 4; left > 0 && len(later) > 0; {
		next := later[0]
		later = later[1:]
		walked := s.walk(next, left/(len(later)+1)+1)
		left, s.across = left-walked, s.across+walked
	}
}

// walk follows links for at most so many pages, and says how many there were.
func (s *stage) walk(next string, most int) (pages int) {
	s.Helper()
	for ; next != "" && pages < most; pages++ {
		s.walked++
		next = s.compare(next, "")
	}
	return pages
}

// move lets the world go on: records arrive, change, go and are emptied.
func (s *stage) move() {
	s.Helper()
	rig.Control(s.T, s.up, "/-/advance", `{"calls":7,"messages":9,"conferences":2,"alerts":3,"seconds":90}`)
	for list, what := range map[string]string{"Calls": `"delete":true`, "Messages": `"body":""`, "Conferences": `"delete":true`, "Recordings": `"delete":true`} {
		kind := strings.ToLower(list)
		ids := s.world.Present(kind)
		var records []string
		for _, i := range s.rng.Perm(len(ids))[:4] {
			records = append(records, fmt.Sprintf(`{"sid":%q,%s}`, ids[i], what))
		}
		if r, err := rig.Ask(http.MethodPost, "", s.up+"/-/edit", fmt.Sprintf(`{"kind":%q,"records":[%s]}`, kind, strings.Join(records, ","))); err != nil || r.Status >= 500 {
			s.Fatalf("edit %s: %d %v %s", kind, r.Status, err, r.Body)
		} else if r.Status != http.StatusOK && (list == "Calls" || list == "Messages") {
			s.Fatalf("edit %s: %d %s", kind, r.Status, r.Body)
		}
	}
	since := time.Now()
	if err := s.world.Walk(); err != nil {
		s.Fatal(err)
	}
	names := rig.KindsWithIDs(s.T)
	rig.Await(s.T, func() string { return rig.Incomplete(s.T, s.server.URL("viewer"), since, names...) })
	s.buried()
}

// buried asks for what was deleted lately: upstream shows it then, and nothing
// of it comes back into the lists.
func (s *stage) buried() {
	s.Helper()
	const path, all = "/2010-04-01/Accounts/" + rig.Account + "/Recordings", "IncludeSoftDeleted=true"
	s.compare(path+".json?PageSize=1000", "")
	s.compare(path+".json?PageSize=1000&"+all, "what is not held")
	shown, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.APIToken, s.up+path+".json?PageSize=1000&"+all, "")
	if err != nil {
		s.Fatal(err)
	}
	var list struct {
		Recordings []struct{ SID, Status string }
	}
	if err := json.Unmarshal(shown.Body, &list); err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(list.Recordings, func(r struct{ SID, Status string }) bool { return r.Status == "deleted" })
	if i < 0 {
		s.Fatal("no recording was deleted")
	}
	s.compare(path+"/"+list.Recordings[i].SID+".json?"+all, "what is not held")
	s.compare(path+"/"+list.Recordings[i].SID+".json", "a record by itself")
	s.compare(path+".json?PageSize=1000", "")
}

// TestListsFromRecords: the server's responses from records equal upstream's for
// every request, before and after changes and restarts.
func TestListsFromRecords(t *testing.T) {
	t.Parallel()
	n := sample.CountFrom("PROVE_LISTS", listsUsual)
	s := newStage(t)
	for range 2 {
		s.round(n / 4)
	}
	for range 2 {
		s.move()
		s.round(n / 4)
	}
	reasons, err := json.Marshal(s.reasons)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests the same, %d of them composed, %d by a token of the page before, %d of these across a restart of both; of the others: %s", s.asked, s.composed, s.walked, s.across, reasons)
	share := 5 // among few requests there may be few with a next page
	if n > 10*listsUsual {
		share = 2
	}
	if s.walked*share < n*8/10 || s.across*2*share < n*8/10 {
		t.Errorf("few of %d went on by token: %d, %d across a restart", s.asked, s.walked, s.across)
	}
	// Shortly after a change a page may be fetched because what is held is not
	// known to be all; that must stay rare. Beside other tests it lasts longer.
	rare := 10
	if n > 10*listsUsual {
		rare = 20
	}
	if most := s.asked / rare; s.reasons["no good reason"] > most || s.composed < s.asked/2 {
		t.Errorf("%d composed of %d; for no good reason may be at most %d not: %s", s.composed, s.asked, most, reasons)
	}
}
