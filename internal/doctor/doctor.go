// Package doctor looks for what is wrong with a server, its settings and what it needs: the disk, the clock, the database, the
// upstream. It changes nothing and sends each source at most one request. No finding contains a secret.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/certificate"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/store"
	"understudy/kit/lockwatch"
	"understudy/spec"
)

// The states of a finding.
const (
	OK      = "ok"
	Warning = "warning" // it works, and may not for long or not well
	Fault   = "fault"   // it does not work
)

// Finding is what a check has found out.
type Finding struct {
	State string `json:"state"`
	Check string `json:"check"`
	Of    string `json:"of,omitempty"` // the source, the folder or the address that was checked
	Text  string `json:"text"`
	Mend  string `json:"mend,omitempty"` // the command or the setting that mends it; "" if it is ok, or if Text says it
}

// Options are what Check needs.
type Options struct {
	Data     string           // the data folder; "" if it is not known
	Settings *config.Settings // nil if they are invalid; then only the data folder is checked
	Sources  []*spec.Source   // the sources of the settings
	Folder   string           // the paths of the settings are relative to it
	Secrets  config.Secrets
	Warnings []string // what understudy check says about the settings
	Invalid  error    // why a server would refuse the settings; nil if it would not
	// Ask sends a GET request to the server that uses the data folder, and decodes its JSON. It is nil if no server runs.
	Ask func(ctx context.Context, path string, into any) error
	Now func() time.Time
}

// examination is a running Check.
type examination struct {
	o       Options
	found   []Finding
	running struct {
		Sources      map[string]struct{ State string }
		Certificates map[string]certificate.State
	} // what the running server says of its sources and certificates
}

// problem is something that may be wrong.
type problem struct {
	is                bool // whether it is wrong
	state, text, mend string
}

// judge adds a finding: the first problem that is there, or else that it is fine.
func (e *examination) judge(check, of, fine string, problems ...problem) {
	f := Finding{State: OK, Check: check, Of: of, Text: fine}
	for _, p := range problems {
		if p.is {
			f.State, f.Text, f.Mend = p.state, p.text, p.mend
			break
		}
	}
	e.found = append(e.found, f)
}

// checkTimeout is the maximum time of one check, also if nobody answers.
const checkTimeout = 45 * time.Second

// Check runs all checks. It returns at least one finding of each check that applies.
func Check(ctx context.Context, o Options) []Finding {
	e := &examination{o: o}
	e.run(ctx, e.checkSettings)
	if o.Data != "" {
		e.run(ctx, e.checkServer, e.checkLocks, e.checkFolder)
	}
	if o.Settings != nil {
		e.run(ctx, e.checkCertificates, e.checkDatabase)
		e.checkSources(ctx)
		e.run(ctx, e.checkExpect)
	}
	return e.found
}

// CheckSources runs only the checks that ask the upstream.
func CheckSources(ctx context.Context, o Options) []Finding {
	e := &examination{o: o}
	e.checkSources(ctx)
	return e.found
}

// run runs checks, each within the time limit.
func (e *examination) run(ctx context.Context, checks ...func(context.Context)) {
	for _, check := range checks {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		check(ctx)
		cancel()
	}
}

func (e *examination) checkSettings(context.Context) {
	for _, text := range e.o.Warnings {
		e.judge("settings", "", "", problem{true, Warning, text, ""})
	}
	if e.o.Invalid != nil || len(e.o.Warnings) == 0 {
		e.judge("settings", "", "nothing is wrong with them",
			problem{e.o.Invalid != nil, Fault, print(e.o.Invalid), "the settings file, then understudy check"})
	}
}

// print returns the text of an error for people, "" without an error.
func print(err error) string {
	if err == nil {
		return ""
	}
	return understudy.PlainText(err)
}

// checkServer asks the running server how it is, and whether it uses the settings of the file.
func (e *examination) checkServer(ctx context.Context) {
	if e.o.Ask == nil {
		return
	}
	var health struct {
		Status  string
		Reasons []string
	}
	var pending config.Pending
	err := e.o.Ask(ctx, "/-/health", &health)
	_ = e.o.Ask(ctx, "/-/reload", &pending) // a demo has no file
	_ = e.o.Ask(ctx, "/-/stats", &e.running)
	for _, reason := range health.Reasons {
		e.judge("server", "", "", problem{true, Warning, reason, "docs/reference/diagnostics.md says what each reason needs"})
	}
	changed := ""
	if len(pending.Changes) > 0 {
		changed = "it uses other values than the settings file, such as of " + pending.Changes[0].Name
	}
	e.judge("server", "", "it answers, and is "+health.Status,
		problem{err != nil, Fault, "it cannot answer: " + print(err), "the cause in its log, then understudy stop and serve"},
		problem{changed != "", Warning, changed, "understudy settings --diff, then understudy reload or a restart"})
}

// checkLocks reads what the running server has recorded about its locks.
func (e *examination) checkLocks(ctx context.Context) {
	var r lockwatch.Report
	if e.o.Ask == nil || e.o.Ask(ctx, "/-/locks?format=json", &r) != nil { // checkServer says that it does not answer
		return
	}
	fine := map[bool]string{true: "nobody waits for long", false: "they are not watched; the page /-/locks begins it"}[r.Watching]
	before := len(e.found)
	for _, f := range r.Findings {
		if f.Kind != lockwatch.Long { // it is harmless if nobody waits
			e.judge("locks", "", "", problem{true, Warning, f.Kind + ": " + strings.Join(f.Steps, "; "),
				"another version of understudy; its authors need the file of understudy bugreport"})
		}
	}
	for _, l := range r.Locks {
		var now time.Duration
		for _, g := range l.Waiters {
			now = max(now, g.Age)
		}
		text := fmt.Sprintf("%s: waited for during %v, held for up to %v", l.Name, max(now, l.Waited.Longest), l.Held.Longest)
		if isStuck := now >= 20*longWait; isStuck || l.Waited.Longest >= longWait {
			e.judge("locks", "", "", problem{isStuck, Fault, text + " and still held", "understudy bugreport, then understudy stop and serve"},
				problem{true, Warning, text, "a faster disk, processor or network: understudy profile cpu shows what works meanwhile"})
		}
	}
	if len(e.found) == before {
		e.judge("locks", "", fine)
	}
}

// The free bytes of a disk below which it is nearly full, and below which little can be saved.
const (
	lowSpace  = 1 << 30
	lastSpace = 64 << 20
)

// checkFolder checks the data folder: its disk, who can open its files, and whether the clock was set back.
func (e *examination) checkFolder(context.Context) {
	entries, err := os.ReadDir(e.o.Data)
	if errors.Is(err, fs.ErrNotExist) {
		e.judge("files", e.o.Data, "it does not exist yet; a server creates it")
		return
	}
	free, _ := datadir.CountFree(e.o.Data) // if the folder cannot be written, err says why
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(e.o.Data, ".new-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	}
	space := fmt.Sprintf("%d MiB are free", free>>20)
	const more = "free space there (df -h, df -i), or a lower store.limit"
	doubtful := datadir.FindDoubtful(e.o.Data)
	e.judge("disk", e.o.Data, space,
		problem{err != nil, Fault, "it cannot be written: " + print(err), "the owner of the folder, or " + more},
		problem{free < lastSpace, Fault, space, more}, problem{free < lowSpace, Warning, space, more},
		problem{doubtful != "", Warning, doubtful + " loses files at a restart, or locks of other machines", "another folder as data"})
	newest, open := time.Time{}, ""
	folder, err := os.Stat(e.o.Data)
	for _, entry := range entries {
		if info, ierr := entry.Info(); ierr == nil {
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			if err == nil && folder.Mode()&info.Mode()&0o077 != 0 && runtime.GOOS != "windows" {
				open = entry.Name()
			}
		}
	}
	e.judge("files", e.o.Data, "other users of this machine cannot open them",
		problem{open != "", Warning, "other users of this machine may open " + open, "chmod 700 " + e.o.Data})
	ahead := newest.Sub(e.o.Now()).Round(time.Second)
	e.judge("clock", e.o.Data, "it was not set back since the server ran",
		problem{ahead > maxDifference, Warning, fmt.Sprintf("it was set back by at least %v: a file is newer", ahead),
			"timedatectl set-ntp true, then a restart of the server"})
}

// checkCertificates checks the certificates of the server's own ports: those that an authority issues, or that of the files.
func (e *examination) checkCertificates(context.Context) {
	cfg, issued := e.o.Settings, e.running.Certificates
	if cfg.TLS.Cert == "" {
		for _, name := range slices.Sorted(maps.Keys(issued)) {
			c := issued[name]
			e.judge("tls", name, "its certificate ends on "+c.Ends.Format(time.DateTime),
				problem{c.Error != "", Fault, "no certificate was issued at " + c.FailedAt.Format(time.DateTime) + ": " + c.Error,
					"tls.acme in the settings, or the way from the authority to port 443 of the host; then understudy restart"},
				problem{c.Ends.IsZero(), Warning, "no certificate is issued yet", "the same command in a minute: understudy doctor"})
		}
		return
	}
	const mend = "another certificate and its key in tls.cert and tls.key, then understudy reload"
	used, err := cfg.TLS.Read(cfg, e.o.Folder, "")
	if err != nil {
		e.judge("tls", cfg.TLS.Cert, "", problem{true, Fault, print(err), mend})
		return
	}
	leaf, missing := used.Leaf(), ""
	for _, v := range config.Values(*cfg) {
		u, err := url.Parse(v.Text)
		if strings.HasSuffix(v.Name, "public_url") && err == nil && u.Scheme == "https" && leaf.VerifyHostname(u.Hostname()) != nil {
			missing = u.Hostname()
		}
	}
	left, c, text := leaf.NotAfter.Sub(e.o.Now()), issued["file"], "it ends on "+leaf.NotAfter.UTC().Format(time.DateTime)
	e.judge("tls", cfg.TLS.Cert, text, problem{left < 0, Fault, "it has expired: " + text, mend},
		problem{!c.Ends.IsZero() && !c.Ends.Equal(leaf.NotAfter), Warning, "the running server uses another one, which ends on " +
			c.Ends.Format(time.DateTime), "understudy reload"}, problem{left < endsSoon, Warning, text, mend},
		problem{missing != "", Warning, "it is not for " + missing + " of public_url", mend})
}

func (e *examination) checkDatabase(ctx context.Context) {
	path, fine := cmp.Or(e.o.Settings.Store.DSN, filepath.Join(e.o.Data, datadir.StoreFile)), true
	about, at, err := store.CheckSettings(ctx, path, func(isFault bool, text, mend string) {
		fine = false
		e.judge("database", "", "", problem{isFault, Fault, text, mend}, problem{true, Warning, text, mend})
	})
	if errors.Is(err, fs.ErrNotExist) {
		about, err = "it does not exist yet; a server creates it", nil
	}
	if fine || err != nil {
		e.judge("database", "", about, problem{err != nil, Fault, print(err), "store.dsn in the settings, or understudy restore"})
	}
	if !at.IsZero() {
		e.compareClocks("database", at)
	}
}

// The differences between two clocks that are a warning and a fault. A request may take a while, and a header has whole seconds.
const (
	maxDifference = 5 * time.Second
	badDifference = time.Minute
)

// compareClocks compares this machine's clock with another one.
func (e *examination) compareClocks(of string, at time.Time) {
	ahead := e.o.Now().Sub(at).Round(time.Second)
	text, mend := fmt.Sprintf("this machine's clock is ahead by %v (negative: behind)", ahead), "timedatectl set-ntp true"
	e.judge("clock", of, "it agrees with this machine's clock", problem{ahead.Abs() >= badDifference, Fault, text, mend},
		problem{ahead.Abs() > maxDifference, Warning, text, mend})
}
