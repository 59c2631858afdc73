// Package ingest is a part of the bench: a million records into the store, page by page.
package ingest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"understudy/bench/rig"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

// stage is what a stretch of records took.
type stage struct {
	Name     string
	Records  int           // so far
	Changes  int64         // in this stretch
	Saving   time.Duration // in Save, in this stretch
	Slowest  time.Duration // the longest Save of them
	CPU      time.Duration // of the process in this stretch, the making of the pages included
	Resident int64         // bytes, at its end
}

// Measure has a process of its own save a million calls in pages of 1,000, with
// their changes and the indexes of lists and search, and then a tenth of them again, each changed. The
// pages are made in the same process, between two saves; only the saves count.
func Measure(ctx context.Context, r *rig.Run) error {
	return measure(ctx, r, filepath.Join(r.Dir, "ingest.db"), 20_000)
}

// MeasurePostgres is Measure with a PostgreSQL database, and with its own target.
func MeasurePostgres(ctx context.Context, r *rig.Run) (err error) {
	dsn, stop, err := rig.StartPostgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return measure(ctx, r, dsn, 5000)
}

// measure compares the rate with least, in records a second.
func measure(ctx context.Context, r *rig.Run, database string, least float64) error {
	records := r.Size(1_000_000, 3000)
	cmd := exec.CommandContext(ctx, r.Self, "ingest", "-records", fmt.Sprint(records), "-path", database)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var stages []stage
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var s stage
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return errors.Join(fmt.Errorf("%w: %s", err, lines.Bytes()), cmd.Wait())
		}
		stages = append(stages, s)
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return err
	}
	return ingested(r, stages, records, least)
}

// ingested shows the stages and compares them with the targets.
func ingested(r *rig.Run, stages []stage, records int, least float64) error {
	rows := [][]string{{"saving pages of 1,000", "records", "records/s", "changes", "slowest save, ms", "CPU us/record", "resident MiB"}}
	var saving, slowest time.Duration
	var first, last int64
	before := 0
	for _, s := range stages {
		n := s.Records - before
		before = s.Records
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Records), rig.Figure(float64(n) / s.Saving.Seconds()), fmt.Sprint(s.Changes), rig.Figure(rig.Ms(s.Slowest)),
			rig.Figure(float64(s.CPU.Microseconds()) / float64(n)), rig.Figure(float64(s.Resident) / rig.Mib)})
		if s.Changes != int64(n) {
			return fmt.Errorf("%d records made %d changes", n, s.Changes)
		}
		if s.Records > records {
			continue // those that changed
		}
		saving += s.Saving
		slowest = max(slowest, s.Slowest)
		if last = s.Resident; first == 0 && s.Records >= records/5 {
			first = s.Resident
		}
	}
	r.Table(rows)
	r.Say("CPU holds the making of the pages")
	r.Say("the slowest save of 1,000 new ones took %s ms", rig.Figure(rig.Ms(slowest)))
	r.AtLeast("records a second, new ones, over all of them", float64(records)/saving.Seconds(), least, "")
	r.AtMost("resident memory at the end over that at a fifth", float64(last)/float64(max(first, 1)), 1.1, "times")
	return nil
}

// Child is the process that saves.
func Child(ctx context.Context, args []string, out io.Writer) (err error) {
	fs := rig.NewFlags("bench ingest", os.Stderr)
	records := fs.Int("records", 1_000_000, "how many")
	path := fs.String("path", "", "the database: a file, or a data source name")
	if err := fs.Parse(args); err != nil {
		return err
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Options{Path: *path, Specs: map[string]*spec.Spec{storetest.Source: sp}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	i := &intake{db: db, out: json.NewEncoder(out), world: storetest.NewWorld(5, *records)}
	if err := i.save(ctx, "new", *records, *records/10); err != nil {
		return err
	}
	for c := range *records / 10 {
		i.world.Changed[c] = 1
	}
	return i.save(ctx, "each changed", *records/10, *records/10)
}

// intake saves the pages of a world.
type intake struct {
	db      *store.DB
	out     *json.Encoder
	world   *storetest.World
	records int // over all
	at      time.Time
}

// save saves the newest records of the world and tells of each stretch.
func (i *intake) save(ctx context.Context, name string, records, stretch int) error {
	s, cpu := stage{Name: name}, rig.Used()
	if i.at.IsZero() {
		i.at = storetest.Epoch
	}
	for n, from, told := 0, 0, 0; from < records; n++ {
		i.at = i.at.Add(time.Second)
		p, next := i.world.List(min(1000, records-from), n, from, i.at)
		i.records += next - from
		from = next
		began := time.Now()
		saved, err := i.db.Save(ctx, p)
		if err != nil {
			return err
		}
		took := time.Since(began)
		s.Saving += took
		s.Slowest = max(s.Slowest, took)
		s.Changes += int64(len(saved.Changes))
		if from-told < stretch && from < records {
			continue
		}
		told = from
		now := rig.Used()
		s.Records, s.CPU = i.records, now-cpu
		if s.Resident, err = rig.ResidentOf(os.Getpid()); err != nil {
			return err
		}
		if err := i.out.Encode(s); err != nil {
			return err
		}
		s, cpu = stage{Name: name}, now
	}
	return nil
}
