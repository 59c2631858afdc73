// The erase and purge commands, and store shrink. An erased record is never stored again. A purged record may be fetched and stored
// again. Both leave free space in the database, which store shrink gives back to the disk.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/diagnostics"
	"understudy/internal/store"
)

type eraseCmd struct {
	Source string     `arg:"" optional:"" help:"Name of a source of the settings."`
	What   string     `arg:"" optional:"" name:"number" help:"Phone number of the person, in any common notation, or KIND/ID for one record."`
	Own    bool       `help:"Erase also if the number is one of the account's own."`
	Yes    bool       `help:"Erase. Without this flag the records are only counted."`
	List   bool       `help:"Print the receipts of earlier erasures instead."`
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

const (
	eraseTimeout   = time.Hour // how long the command waits for the receipt of an erasure
	maxEraseRounds = 5         // how often the command erases again, because new records may arrive in the meantime
)

// Run erases records, counts what it would erase, or lists the receipts of earlier erasures.
func (c *eraseCmd) Run(ctx context.Context, p *process) error {
	if !c.List && (c.Source == "" || c.What == "") {
		return usageError{errors.New("write understudy erase SOURCE NUMBER, or understudy erase --list")}
	}
	return c.Place.askServer(ctx, p, true, func(ctx context.Context, server *admin) error { return c.erase(ctx, p, server) })
}

// erase erases records, counts what it would erase, or lists receipts. It erases again until no record matches.
func (c *eraseCmd) erase(ctx context.Context, p *process, server *admin) error {
	if c.List {
		return c.printReceipts(ctx, p.stdout, server)
	}
	w := p.stdout
	e := diagnostics.Erase{Source: c.Source, What: c.What, Dry: !c.Yes, Own: c.Own}
	for round := range maxEraseRounds {
		var got diagnostics.Erasing
		err := server.ask(ctx, http.MethodPost, "/-/erase", e, &got)
		if err != nil {
			return err
		}
		switch {
		case len(got.Found) == 0 && round > 0:
			return nil
		case c.Output.JSON && (len(got.Found) == 0 || !c.Yes):
			return json.NewEncoder(w).Encode(got)
		case len(got.Found) == 0:
			_, err = fmt.Fprintln(w, "no stored record matches")
			return err
		case !c.Yes:
			add := "--yes"
			if got.Own {
				fmt.Fprintln(w, "this is one of the account's own numbers: every record with it would be erased, whoever the other person is")
				add = "--yes --own"
			}
			_, err = fmt.Fprintf(w, "would erase %s; nothing was changed; add %s to erase\n", describeKinds(got.Found), add)
			return err
		}
		progress := terminal.NewProgress(p.stderr, "erase", p.quiet)
		r, all, err := awaitReceipt(ctx, server, got.Receipt.Number)
		progress.End()
		if err != nil {
			return err
		}
		if got.Receipt, got.Residue = &r, all.Residue; c.Output.JSON {
			if err := json.NewEncoder(w).Encode(got); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "erased %s\nreceipt %s\n", describeKinds(got.Found), describeReceipt(r))
		printResidue(w, all)
		if round == 0 {
			fmt.Fprintln(w, "The provider still has these records: delete them there, too. Its answers with them are passed on but not stored.")
		}
	}
	return errors.New("new records that match keep arriving; run the command again")
}

// awaitReceipt waits until the erasure with a receipt number is complete, but at most eraseTimeout.
func awaitReceipt(ctx context.Context, server *admin, number int64) (r diagnostics.Receipt, all diagnostics.Receipts, err error) {
	ctx, cancel := context.WithTimeout(ctx, eraseTimeout)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		var err error
		all, err = readReceipts(ctx, server, number+1, 1)
		if err != nil || len(all.Erasures) != 1 || all.Erasures[0].Number != number {
			return false, err
		}
		r = all.Erasures[0]
		return !r.Done.IsZero(), nil
	})
	if ctx.Err() != nil {
		return r, all, fmt.Errorf("the erasure with receipt %d is not finished: %w; it goes on, and understudy erase --list shows its receipt",
			number, ctx.Err())
	}
	return r, all, err
}

// printResidue prints where bytes of erased records may still be.
func printResidue(w io.Writer, all diagnostics.Receipts) {
	for i, r := range all.Residue {
		if i == 0 {
			fmt.Fprintln(w, "the database may still contain bytes of erased records:")
		}
		fmt.Fprintf(w, "  %s, until %s\n", r.Where, r.Until)
	}
}

// describeKinds returns the number of records of each kind, such as "2 calls, 1 recordings", sorted by the name of the kind.
func describeKinds(found map[string]int) string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		words = append(words, fmt.Sprintf("%d %s", found[kind], kind))
	}
	return strings.Join(words, ", ")
}

func describeReceipt(r diagnostics.Receipt) string {
	done := "under way"
	if !r.Done.IsZero() {
		done = r.Done.UTC().Format(time.RFC3339)
	}
	line := fmt.Sprintf("%d  %s  %s %s: %s, %s, %s, %s", r.Number, done, r.Source, r.Cause,
		formatCount(int(r.Records), "record"), formatCount(int(r.Versions), "version"), formatCount(int(r.Pages), "page"),
		formatCount(int(r.Files), "file"))
	if r.Hash != "" {
		line += "  " + r.Hash
	}
	return line
}

// printReceipts prints the newest receipts of erasures.
func (c *eraseCmd) printReceipts(ctx context.Context, w io.Writer, server *admin) error {
	const maxShown = 1000
	all, err := readReceipts(ctx, server, 0, maxShown)
	if err != nil {
		return err
	}
	if c.Output.JSON {
		return json.NewEncoder(w).Encode(all)
	}
	for _, r := range all.Erasures {
		fmt.Fprintln(w, describeReceipt(r))
	}
	printResidue(w, all)
	if n := all.Waiting.Records; n > 0 {
		fmt.Fprintf(w, "%s to be erased since %s\n", formatCount(int(n), "record"), all.Waiting.Since.UTC().Format(time.RFC3339))
	} else if len(all.Erasures) == 0 {
		fmt.Fprintln(w, "nothing was erased yet")
	}
	return nil
}

// readReceipts returns receipts of erasures, newest first and at most limit of them. If before is not 0, it returns
// only receipts with a lower number.
func readReceipts(ctx context.Context, server *admin, before int64, limit int) (all diagnostics.Receipts, err error) {
	path := "/-/erasures?limit=" + strconv.Itoa(limit)
	if before > 0 {
		path += "&before=" + strconv.FormatInt(before, 10)
	}
	err = server.ask(ctx, http.MethodGet, path, nil, &all)
	return all, err
}

type purgeCmd struct {
	Output outputFlag `embed:""`
	Source string     `arg:"" help:"Name of a source of the settings."`
	What   string     `arg:"" name:"key-or-record" help:"Path and query as a program asks for them, or KIND/ID for a record."`
	Place  dataFlags  `embed:""`
}

// Run asks the server to delete its stored copy of records.
func (c *purgeCmd) Run(ctx context.Context, p *process) error {
	var done diagnostics.Purged
	if err := c.Place.ask(ctx, p, http.MethodPost, "/-/purge", diagnostics.Purge{Source: c.Source, What: c.What}, &done); err != nil {
		return err
	}
	return c.Output.print(p.stdout, done, func(w io.Writer) error { return printPurged(w, c.What, done) })
}

func printPurged(w io.Writer, what string, done diagnostics.Purged) error {
	if done == (diagnostics.Purged{}) {
		_, err := fmt.Fprintf(w, "nothing is stored for %s\n", what)
		return err
	}
	samples := ""
	if done.Samples > 0 {
		samples = ", " + formatCount(done.Samples, "sample")
	}
	_, err := fmt.Fprintf(w, "deleted: %s, %s, %s%s\n", formatCount(done.Pages, "page"), formatCount(done.Versions, "version"),
		formatCount(done.Files, "file"), samples)
	return err
}

type storeAdviseCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints how many bytes the ids of each kind take, and how many in their shortest form.
func (c *storeAdviseCmd) Run(ctx context.Context, p *process) (err error) {
	db, err := c.Place.openStore(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all, err := store.FindShorterIDs(ctx, db)
	if err != nil {
		return err
	}
	return c.Output.print(p.stdout, all, func(w io.Writer) error {
		saves := int64(0)
		table := terminal.Table{{"SOURCE", "KIND", "IDS", "BYTES", "SHORT", "SAVES"}}
		for _, one := range all {
			table.Add(one.Source, one.Kind, fmt.Sprint(one.IDs), fmt.Sprint(one.Bytes), fmt.Sprint(one.Short), fmt.Sprint(one.Saves))
			saves += one.Saves
		}
		err := table.Print(w)
		fmt.Fprintf(w, "\nunderstudy store shrink makes the tables of ids %d bytes smaller\n", saves)
		return err
	})
}

type storeShrinkCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run asks the server to shrink the database, and shows the progress.
func (c *storeShrinkCmd) Run(ctx context.Context, p *process) error {
	interrupted := errors.New("interrupted; a running server goes on, and the same command shows its progress")
	at, err := watchWork(ctx, p, &c.Place, "store shrink", "/-/shrink", nil, interrupted, func(at diagnostics.Shrunk) (terminal.State, bool) {
		return terminal.State{Done: min(at.Copied, at.Live), Total: at.Live, Unit: "bytes"}, !at.Running
	})
	if err == nil && at.Error != "" {
		err = errors.New(at.Error)
	}
	if err != nil {
		return err
	}
	return c.Output.print(p.stdout, at, func(w io.Writer) error {
		fmt.Fprintf(w, "%d bytes, before %d bytes\n", at.After, at.Before)
		if at.LongIDs > 0 {
			fmt.Fprintf(w, "Shorter ids would save %d bytes. They were not stored, because other processes use the database.\n", at.LongIDs)
		}
		if at.Distant {
			fmt.Fprintln(w, "PostgreSQL uses the free space of its tables again. VACUUM FULL gives it back, and locks each table; "+
				"pg_repack locks none.")
		}
		return nil
	})
}

func formatCount(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
