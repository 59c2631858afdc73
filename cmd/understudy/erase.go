// Erase: takes a person out of every file, in a running server or its folder.

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

	"understudy/internal/app"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
)

type eraseCmd struct {
	Source string `arg:"" optional:"" help:"A configured source."`
	What   string `arg:"" optional:"" name:"number" help:"A person's number, in any common way of writing it, or KIND/ID."`
	Own    bool   `help:"Erase a number although it is one of the account's own."`
	Yes    bool   `help:"Erase. Without it nothing is changed: what would go is counted."`
	List   bool   `help:"Print the receipts instead."`
	place
}

const (
	eraseWait   = time.Hour // for the receipt
	eraseLook   = 100 * time.Millisecond
	eraseRounds = 5 // a number that goes on calling is not followed for ever
)

// Help is what --help says below the flags.
func (c *eraseCmd) Help() string {
	return "Takes every record with a number out of the data folder for good, with what lies under it, its history, pages and files, and " +
		"prints the receipt. It is not stored again, though upstream still has it: delete it there, too. Without --yes it only counts.\n" +
		"docs/erase.md tells all of it."
}

// eraser is where the erasing is done: a server, or the folder itself.
type eraser interface {
	Erase(ctx context.Context, e diagnostics.Erase) (diagnostics.Erasing, error)
	Receipts(ctx context.Context, before int64, limit int) (diagnostics.Receipts, error)
}

// Run asks the server that holds the folder, or does it in the folder itself
// when none does.
func (c *eraseCmd) Run(ctx context.Context, p *process) error {
	if !c.List && (c.Source == "" || c.What == "") {
		return usageError{errors.New("write understudy erase SOURCE NUMBER, or understudy erase --list")}
	}
	return c.work(p, func(server admin) error {
		return c.with(ctx, p.stdout, server)
	}, func(cfg *config.Settings, settings string, dir *datadir.Dir) (err error) {
		f, err := app.OpenErasing(ctx, cfg, settings, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return c.with(ctx, p.stdout, f)
	})
}

func (c *eraseCmd) with(ctx context.Context, w io.Writer, by eraser) error {
	if c.List {
		return printReceipts(ctx, w, by)
	}
	e := diagnostics.Erase{Source: c.Source, What: c.What, Dry: !c.Yes, Own: c.Own}
	for round := range eraseRounds {
		got, err := by.Erase(ctx, e)
		if err != nil {
			return mistake(err)
		}
		switch {
		case len(got.Found) == 0 && round > 0:
			return nil
		case len(got.Found) == 0:
			_, err = fmt.Fprintln(w, "nothing is held of it")
			return err
		case !c.Yes:
			add := "--yes"
			if got.Own {
				fmt.Fprintln(w, "this is one of the account's own numbers: everything that went through it would go, whoever called")
				add = "--yes --own"
			}
			_, err = fmt.Fprintf(w, "would erase %s; nothing was changed, add %s to do it\n", kindsOf(got.Found), add)
			return err
		}
		r, err := awaitReceipt(ctx, by, got.Receipt.Number)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "erased %s\nreceipt %s\n", kindsOf(got.Found), receiptLine(r))
		if round == 0 {
			fmt.Fprintln(w, "upstream still has them: delete them there as well. What it shows of them passes to readers and is not stored.")
		}
	}
	return fmt.Errorf("records of it keep coming; run the command again")
}

// awaitReceipt waits until an errand is done.
func awaitReceipt(ctx context.Context, by eraser, number int64) (diagnostics.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, eraseWait)
	defer cancel()
	look := time.NewTicker(eraseLook)
	defer look.Stop()
	for {
		all, err := by.Receipts(ctx, number+1, 1)
		if err != nil {
			return diagnostics.Receipt{}, err
		}
		if len(all.Erasures) == 1 && all.Erasures[0].Number == number && all.Erasures[0].Done != nil {
			return all.Erasures[0], nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return diagnostics.Receipt{}, fmt.Errorf("receipt %d is not there yet: %w; what is listed is erased all the same, see understudy "+
				"erase --list", number, ctx.Err())
		}
	}
}

// kindsOf is "2 calls, 1 recordings", in the order of the names.
func kindsOf(found map[string]int) string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		words = append(words, fmt.Sprintf("%d %s", found[kind], kind))
	}
	return strings.Join(words, ", ")
}

func receiptLine(r diagnostics.Receipt) string {
	done := "under way"
	if r.Done != nil {
		done = r.Done.UTC().Format(time.RFC3339)
	}
	line := fmt.Sprintf("%d  %s  %s %s: %s, %s, %s, %s", r.Number, done, r.Source, r.Cause,
		countOf(int(r.Records), "record"), countOf(int(r.Versions), "version"), countOf(int(r.Pages), "page"), countOf(int(r.Files), "file"))
	if r.Hash != "" {
		line += "  " + r.Hash
	}
	return line
}

func printReceipts(ctx context.Context, w io.Writer, by eraser) error {
	const most = 1000
	all, err := by.Receipts(ctx, 0, most)
	if err != nil {
		return err
	}
	for _, r := range all.Erasures {
		fmt.Fprintln(w, receiptLine(r))
	}
	if n := all.Waiting.Records; n > 0 {
		fmt.Fprintf(w, "%s to be erased since %s\n", countOf(int(n), "record"), all.Waiting.Since.UTC().Format(time.RFC3339))
	} else if len(all.Erasures) == 0 {
		fmt.Fprintln(w, "nothing was erased yet")
	}
	return nil
}

// erase asks the running server.
func (r admin) Erase(ctx context.Context, e diagnostics.Erase) (got diagnostics.Erasing, err error) {
	body, err := json.Marshal(e)
	if err != nil {
		return got, err
	}
	return got, r.ask(ctx, http.MethodPost, "/-/erase", body, &got)
}

func (r admin) Receipts(ctx context.Context, before int64, limit int) (all diagnostics.Receipts, err error) {
	path := "/-/erasures?limit=" + strconv.Itoa(limit)
	if before > 0 {
		path += "&before=" + strconv.FormatInt(before, 10)
	}
	return all, r.ask(ctx, http.MethodGet, path, nil, &all)
}
