// The store commands: they show statistics and waits of the database in a data folder, verify it, and repair it.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/locks"
)

type storeCmd struct {
	Stats   storeStatsCmd   `cmd:"" help:"Print counts and sizes in bytes for each kind."`
	Rebuild storeRebuildCmd `cmd:"" help:"Rebuild the search indexes from the records."`
	Verify  storeVerifyCmd  `cmd:"" help:"Read the whole database and print what is damaged."`
	Advise  storeAdviseCmd  `cmd:"" help:"Print how many bytes shorter ids save, which store shrink stores."`
	Shrink  storeShrinkCmd  `cmd:"" help:"Store ids in their shortest forms, and give free space back to the disk."`
	Locks   storeLocksCmd   `cmd:"" help:"Print who waits for whom in the database, and which session to end."`
	Move    storeMoveCmd    `cmd:"" help:"Copy the database to another one: from SQLite to PostgreSQL, or back."`
}

// openStore opens the database, which must exist already.
func (c *dataFlags) openStore(ctx context.Context, p *process) (*store.DB, error) {
	path, err := c.findStore(p)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, store.Options{Path: path, Now: time.Now})
}

// findStore returns the path or the DSN of the database. A file must exist already.
func (c *dataFlags) findStore(p *process) (string, error) {
	path := filepath.Join(c.Data, datadir.StoreFile)
	cfg, _, err := c.readSettings(p)
	switch {
	case err == nil:
		path = cmp.Or(cfg.Store.DSN, filepath.Join(cfg.Data, datadir.StoreFile))
	case c.Config != "" || c.Data == "":
		return "", fmt.Errorf("%w; name the data folder with --data", err)
	}
	if _, err := os.Stat(path); err != nil && !store.IsPostgreSQL(path) {
		return "", fmt.Errorf("the database %s cannot be read: %w; name a data folder with --data", path, stripPath(err))
	}
	return path, nil
}

type storeStatsCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints how many records of each kind are stored, and the sizes of the database.
func (c *storeStatsCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := c.Place.openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := db.ReadStats(ctx)
	if err != nil {
		return err
	}
	return c.Output.print(p.stdout, s, func(w io.Writer) error { return printStats(w, s) })
}

// printStats prints a table of the kinds and one of the database's tables, and below them the sizes of the database in bytes.
func printStats(out io.Writer, s store.Stats) error {
	table := terminal.Table{{"SOURCE", "KIND", "RECORDS", "VERSIONS", "CHANGES", "AS SENT", "PACKED"}}
	for _, k := range s.Kinds {
		table.Add(k.Source, k.State.Kind, fmt.Sprint(k.State.Records), fmt.Sprint(k.Versions), fmt.Sprint(k.State.Changes),
			fmt.Sprint(k.Unpacked), fmt.Sprint(k.Packed))
	}
	if err := table.Print(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	tables := terminal.Table{{"TABLE", "BYTES"}}
	for _, one := range s.Tables {
		tables.Add(one.Name, fmt.Sprint(one.Bytes))
	}
	if err := tables.Print(out); err != nil {
		return err
	}
	on := s.Space
	fmt.Fprintf(out, "\n%d pages, %d records\n%d bytes on disk (log %d, free %d)\n%.1f bytes per record\n",
		s.Pages, s.Records, on.File+on.WAL, on.WAL, on.Free, s.PerRecord)
	when := "never"
	if !on.EvictedAt.IsZero() {
		when = on.EvictedAt.Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(out, "evicted near the limit: %d pages, %d versions (last: %s)\n", on.EvictedPages, on.EvictedVersions, when)
	return err
}

type storeVerifyCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run verifies the database. It prints what it has checked and what is damaged.
func (c *storeVerifyCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := c.Place.openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	progress := terminal.NewProgress(p.stderr, "store verify", p.quiet)
	db.Verifier.OnRow = func(done, total int64) { progress.Set(terminal.State{Done: done, Total: total, Unit: "rows"}) }
	r, err := db.Verifier.Verify(ctx)
	progress.End()
	if err != nil {
		return err
	}
	contents, damaged, err := c.verifyContents(ctx, p)
	if err != nil {
		return err
	}
	r.Problems = append(r.Problems, damaged...)
	err = c.Output.print(p.stdout, r, func(w io.Writer) error {
		fmt.Fprintf(w, "checked %d pages, %d blocks, %d versions, %d records (and %d deleted ones), %d changes and %d contents\n",
			r.Pages, r.Blocks, r.Versions, r.Records, r.Gone, r.Changes, contents)
		for _, problem := range r.Problems {
			fmt.Fprintln(w, problem)
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := func(suffix string) bool {
		return !slices.ContainsFunc(r.Problems, func(problem string) bool { return !strings.HasSuffix(problem, suffix) })
	}
	switch n := len(r.Problems); {
	case n > 0 && all("run understudy store rebuild"):
		return fmt.Errorf("%s found, all in the indexes; run understudy store rebuild", formatCount(n, "problem"))
	case n > 0 && all(purgeIt):
		return fmt.Errorf("%s found, all in contents; run understudy purge for their records", formatCount(n, "problem"))
	case n > 0:
		return fmt.Errorf("%s found; keep a copy of the data folder, and start the server with a new one", formatCount(n, "problem"))
	case !c.Output.JSON:
		_, err = fmt.Fprintln(p.stdout, "no damage found")
	}
	return err
}

// purgeIt is what to do about a damaged content.
const purgeIt = "purge its record"

// verifyContents reads all contents in the folder or the bucket. It returns how many there are, and which are damaged.
func (c *storeVerifyCmd) verifyContents(ctx context.Context, p *process) (checked int64, problems []string, err error) {
	o := contents.Options{Dir: filepath.Join(c.Place.Data, datadir.MediaFolder)}
	if cfg, folder, err := c.Place.readSettings(p); err == nil { // otherwise openStore has found the database in the data folder
		if o, err = cfg.Store.ReadContents(ctx, cfg.Data, config.FileSecrets(folder)); err != nil {
			return 0, nil, err
		}
	}
	checked, err = contents.Verify(ctx, o, func(key understudy.Key) {
		problems = append(problems, fmt.Sprintf("the bytes of the content %s have changed; %s", key, purgeIt))
	})
	return checked, problems, err
}

type storeRebuildCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run asks the server to rebuild the indexes of the database, and shows the progress.
func (c *storeRebuildCmd) Run(ctx context.Context, p *process) error {
	interrupted := errors.New("interrupted; the running server, or the next server that starts, continues to build the indexes")
	at, err := watchWork(ctx, p, &c.Place, "store rebuild", "/-/index", nil, interrupted,
		func(at diagnostics.Indexed) (terminal.State, bool) {
			return terminal.State{Done: at.Done, Total: at.Total, Unit: "records"}, at.Done >= at.Total
		})
	if err != nil {
		return err
	}
	return c.Output.print(p.stdout, at, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "the indexes are complete: %s\n", formatCount(int(at.Total), "record"))
		return err
	})
}

// watchWork lets a server begin work with a POST of body to a path, and asks for its state until show returns done = true. It shows
// the progress. If ctx ends, it returns the error interrupted.
func watchWork[T any](ctx context.Context, p *process, place *dataFlags, name, path string, body any, interrupted error,
	show func(at T) (s terminal.State, done bool)) (at T, err error) {
	err = place.askServer(ctx, p, true, func(ctx context.Context, server *admin) error {
		progress := terminal.NewProgress(p.stderr, name, p.quiet)
		defer progress.End()
		method := http.MethodPost
		err := poll(ctx, func() (bool, error) {
			at = *new(T)
			err := server.ask(ctx, method, path, body, &at)
			method = http.MethodGet
			s, done := show(at)
			progress.Set(s)
			return done, err
		})
		if ctx.Err() != nil {
			return interrupted
		}
		return err
	})
	return at, err
}

type storeMoveCmd struct {
	To    string    `required:"" placeholder:"DSN" help:"Empty database: a postgres:// DSN, or the path of a new SQLite file."`
	Place dataFlags `embed:""`
}

// Run moves the database and says what to write into the settings.
func (c *storeMoveCmd) Run(ctx context.Context, p *process) error {
	from, err := c.Place.findStore(p)
	if err != nil {
		return err
	}
	data, err := c.Place.findData(p)
	if err != nil {
		return err
	}
	dir, err := datadir.Open(data, false)
	if err != nil && !errors.As(err, new(datadir.InUseError)) {
		return err
	}
	hasStopped := func() bool {
		if dir == nil {
			dir, _ = datadir.Open(data, false) // no server can start until dir is closed
		}
		return dir != nil
	}
	progress := terminal.NewProgress(p.stderr, "store move", p.quiet)
	err = store.Move(ctx, store.MoveOptions{From: from, To: c.To, HasStopped: hasStopped,
		Report: func(step string, done, total int64) {
			progress.Set(terminal.State{Done: done, Total: total, Unit: "rows", Note: step})
		},
		Notify: func(sentence string) { progress.Print(p.stderr, sentence) }})
	progress.End()
	if ctx.Err() != nil {
		err = errors.New("interrupted; the same command continues the copy")
	}
	if err == nil {
		_, err = fmt.Fprintln(p.stdout, "the copy is complete; before a server starts, write where it is into the settings: store.dsn")
	}
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	return err
}

type storeLocksCmd struct {
	Log    string     `placeholder:"FILE" help:"Read the log of a PostgreSQL server instead; - is the standard input."`
	DSN    string     `name:"dsn" placeholder:"DSN" help:"Look into this PostgreSQL database instead, such as with another user."`
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints the sessions or the events of a log.
func (c *storeLocksCmd) Run(ctx context.Context, p *process) error {
	if c.Log != "" {
		return c.readLog(p)
	}
	path := c.DSN
	if path == "" {
		var err error
		if path, err = c.Place.findStore(p); err != nil {
			return err
		}
	}
	r, err := store.ReadLocks(ctx, path)
	if err != nil {
		return err
	}
	isFile := !store.IsPostgreSQL(path)
	if isFile && len(r.Sessions) > 0 {
		c.describeWriter(ctx, p, &r.Sessions[0])
	}
	return c.Output.print(p.stdout, r, func(w io.Writer) error {
		switch {
		case len(r.Sessions) > 0:
			return printLocks(w, r)
		case isFile:
			_, err = fmt.Fprintf(w, "no process writes to %s now\n", r.Database)
		default:
			_, err = fmt.Fprintf(w, "no session waits for a lock in the %s\n", r.Database)
		}
		return err
	})
}

// askWriterTimeout is how long the server may take to say what it is writing.
const askWriterTimeout = time.Second

// describeWriter adds the name of the process and, if the process is the server, what it is writing.
func (c *storeLocksCmd) describeWriter(ctx context.Context, p *process, s *locks.Session) {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", s.PID)) // only Linux has this file
	s.Program = strings.TrimSpace(string(name))
	data, err := c.Place.findData(p)
	if err != nil {
		return
	}
	run, err := datadir.ReadRunning(data)
	if err != nil {
		return
	}
	if int64(run.PID) != s.PID {
		s.State = fmt.Sprintf("writes, and the server waits; if this process hangs, end it: kill %d", s.PID)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askWriterTimeout)
	defer cancel()
	var stats diagnostics.Snapshot
	if newLocalAdmin(run).ask(ctx, http.MethodGet, "/-/stats", nil, &stats) == nil && stats.Store.Writing != nil {
		s.Query, s.Seconds = stats.Store.Writing.What, time.Since(stats.Store.Writing.Since).Seconds()
	}
}

// printLocks prints the tree of sessions and the statements that end the waits.
func printLocks(w io.Writer, r *locks.Report) error {
	table := terminal.Table{{"PROCESS", "PROGRAM", "USER", "TRANSACTION", "STATE", "QUERY"}}
	for _, s := range r.Sessions {
		switch {
		case s.Again:
			s.State = "see above"
		case s.Wanted != "":
			s.State = fmt.Sprintf("waits %s for %s", formatSeconds(s.Waited), s.Wanted)
		}
		table.Add(strings.Repeat("  ", s.Depth)+fmt.Sprint(s.PID), terminal.Printable(s.Program), terminal.Printable(s.User),
			formatSeconds(s.Seconds), terminal.Printable(s.State), terminal.Printable(s.Query))
	}
	if err := table.Print(w); err != nil || len(r.End) == 0 {
		return err
	}
	fmt.Fprintln(w, "\nto end the waits (the transactions of these sessions are rolled back):")
	for _, pid := range r.End {
		statement := fmt.Sprintf("SELECT pg_terminate_backend(%d);", pid)
		if pid == 0 {
			statement = "SELECT gid FROM pg_prepared_xacts; ROLLBACK PREPARED …;"
		}
		fmt.Fprintln(w, statement)
	}
	return nil
}

func formatSeconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(time.Millisecond).String()
}

func formatProcesses(all []int64) string { return strings.Trim(fmt.Sprint(all), "[]") }

// readLog prints the events of a log.
func (c *storeLocksCmd) readLog(p *process) error {
	log := p.stdin
	if c.Log != "-" {
		f, err := os.Open(c.Log)
		if err != nil {
			return fmt.Errorf("the log cannot be read: %w", err)
		}
		defer f.Close()
		log = f
	}
	table, lines := terminal.Table{{"LINE", "PROCESS", "EVENT", "MS", "HELD BY", "QUEUE", "STATEMENT"}}, json.NewEncoder(p.stdout)
	err := locks.ReadLog(log, func(e locks.Event) error {
		if c.Output.JSON {
			return lines.Encode(e)
		}
		event := strings.TrimSuffix(e.What+" "+e.Lock+" on "+e.On, "  on ")
		table.Add(terminal.Printable(e.Prefix), fmt.Sprint(e.PID), terminal.Printable(event), fmt.Sprint(e.Milliseconds),
			formatProcesses(e.Holders), formatProcesses(e.Queue), terminal.Printable(cmp.Or(e.Statement, e.Context)))
		return nil
	})
	if err != nil || c.Output.JSON {
		return err
	}
	return table.Print(p.stdout)
}
