// The audit commands: they read the audit log in a data folder, even while a server writes to it.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/audit"
	"understudy/internal/config"
	"understudy/internal/credentials"
	"understudy/internal/datadir"
	"understudy/internal/smallfile"
)

type auditCmd struct {
	Tail   auditTailCmd   `cmd:"" help:"Print the newest entries of the audit log."`
	Search auditSearchCmd `cmd:"" help:"Find entries: who read a number, or what a person did."`
	Export auditExportCmd `cmd:"" help:"Print all lines of the log, the oldest first."`
	Verify auditVerifyCmd `cmd:"" help:"Verify that nobody changed the log."`
}

// auditLogFlags has the flags that choose an audit log.
type auditLogFlags struct {
	Config string `group:"data" placeholder:"FILE" help:"Settings file (default understudy.yml)."`
	Data   string `group:"data" placeholder:"DIR" help:"Data folder (default: data of the settings file)."`
}

// open returns a reader of the audit log and the path of the newest checkpoints. If only --data is given, it needs no
// settings file.
func (c *auditLogFlags) open(ctx context.Context, p *process) (r audit.Reader, heads string, err error) {
	cfg, folder, err := (*dataFlags)(c).readSettings(p)
	if _, none := os.Stat("understudy.yml"); err != nil && none != nil && c.Data != "" && c.Config == "" {
		cfg, folder, err = &config.Settings{Data: c.Data}, ".", nil
	}
	if err != nil {
		return r, "", err
	}
	r.Dir = filepath.Join(cfg.Data, datadir.AuditName)
	if _, err := os.Stat(r.Dir); err != nil {
		return r, "", fmt.Errorf("the audit log %s cannot be read: %w; name the data folder with --data", r.Dir, stripPath(err))
	}
	r.Key, err = cfg.Audit.ReadKey(ctx, cfg.Data, config.FileSecrets(folder), false)
	return r, config.AuditHeads(cfg.Data), err
}

type auditTailCmd struct {
	Lines  int           `short:"n" default:"10" placeholder:"N" help:"Number of entries (default ${default})."`
	Follow bool          `short:"f" help:"Print new entries as they are written, until Ctrl-C."`
	JSON   bool          `name:"json" help:"Print the lines of the log instead of a table."`
	Place  auditLogFlags `embed:""`
}

// Run prints the newest entries of the audit log. The newest entry is last.
func (c *auditTailCmd) Run(ctx context.Context, p *process) error {
	if c.Lines < 0 || c.Lines > audit.MaxFound {
		return usageError{fmt.Errorf("--lines %d: write a number up to %d", c.Lines, audit.MaxFound)}
	}
	r, _, err := c.Place.open(ctx, p)
	if err != nil {
		return err
	}
	out := auditPrinter{w: p.stdout, json: c.JSON}
	last, err := r.ReadHeads(ctx)
	if err != nil {
		return err
	}
	if c.Lines > 0 {
		found, err := r.Search(ctx, audit.Filter{Limit: c.Lines})
		if err != nil {
			return err
		}
		if err := out.printEntries(found.Entries, true); err != nil {
			return err
		}
		for _, e := range found.Entries {
			last[e.Chain] = max(last[e.Chain], e.Number)
		}
	}
	if !c.Follow {
		return nil
	}
	err = poll(ctx, func() (bool, error) { return false, printLater(r, last, out) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// printLater prints all entries that are newer than those in last, which has the last printed entry of each chain. It
// updates last.
func printLater(r audit.Reader, last map[string]uint64, out auditPrinter) error {
	ids, err := audit.ListChains(r.Dir)
	if err != nil {
		return err
	}
	var all []audit.Entry
	for _, id := range ids {
		for line, err := range r.Lines(id, last[id]+1) {
			if err != nil {
				break // the server has not written this line completely yet
			}
			var e audit.Entry
			last[id] = line.Number
			if json.Unmarshal(line.Data, &e) == nil && e.Action != "" {
				all = append(all, e)
			}
		}
	}
	return out.printEntries(all, false)
}

type auditSearchCmd struct {
	Value  string        `arg:"" optional:"" help:"A phone number or a word, to find who read it or searched for it."`
	Who    string        `placeholder:"NAME" help:"Name of a person or of a credential."`
	Action string        `placeholder:"ACTION" help:"Action: record, search, play, export, send, delete, note, sign-in, administer or list."`
	Record string        `placeholder:"ID" help:"Id of a record that was read or changed."`
	Source string        `placeholder:"NAME" help:"Only entries about this source."`
	Kind   string        `placeholder:"KIND" help:"Only entries about records of this kind."`
	Since  string        `placeholder:"DATE" help:"Only entries from this time on: 2027-01-01, an RFC 3339 time, or 7d for the last 7 days."`
	Until  string        `placeholder:"DATE" help:"Only entries up to this time, written the same way."`
	Limit  int           `default:"100" placeholder:"N" help:"Largest number of entries (default ${default})."`
	JSON   bool          `name:"json" help:"Print a line of JSON for each entry instead of a table."`
	Place  auditLogFlags `embed:""`
}

// Run prints the entries of the audit log that match the flags, newest first.
func (c *auditSearchCmd) Run(ctx context.Context, p *process) error {
	f := audit.Filter{Caller: c.Who, Action: understudy.Action(c.Action), ID: c.Record, Source: c.Source, Kind: c.Kind, Value: c.Value}
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for _, bound := range []struct {
		name, text string
		to         *time.Time
	}{{"--since", c.Since, &f.Since}, {"--until", c.Until, &f.Until}} {
		if bound.text == "" {
			continue
		}
		at, err := credentials.ParseDate(bound.text, ago)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", bound.name, err)}
		}
		*bound.to = at
	}
	r, _, err := c.Place.open(ctx, p)
	if err != nil {
		return err
	}
	out := auditPrinter{w: p.stdout, json: c.JSON}
	for left := c.Limit; left > 0; {
		f.Limit = min(left, audit.MaxFound)
		found, err := r.Search(ctx, f)
		if err == nil {
			err = out.printEntries(found.Entries, false)
		}
		if err != nil || found.Next == "" || ctx.Err() != nil {
			return err
		}
		left -= len(found.Entries)
		f.Before = found.Next
	}
	return nil
}

type auditExportCmd struct {
	Chain string        `placeholder:"NAME" help:"Only this chain of entries (default: all chains)."`
	Place auditLogFlags `embed:""`
}

// Run prints all lines of the audit log, one chain after another.
func (c *auditExportCmd) Run(ctx context.Context, p *process) error {
	r, _, err := c.Place.open(ctx, p)
	if err != nil {
		return err
	}
	ids, err := audit.ListChains(r.Dir)
	if err != nil {
		return err
	}
	if c.Chain != "" {
		if !slices.Contains(ids, c.Chain) {
			return usageError{fmt.Errorf("there is no chain %q; the chains are %s", understudy.Clip(c.Chain), strings.Join(ids, ", "))}
		}
		ids = []string{c.Chain}
	}
	w := bufio.NewWriter(p.stdout)
	progress := terminal.NewProgress(p.stderr, "audit export", p.quiet || terminal.IsTerminal(p.stdout))
	defer progress.End()
	progress.Set(terminal.State{Total: r.SumSizes(ids), Unit: "bytes"})
	for _, id := range ids {
		for line, err := range r.Lines(id, 0) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				progress.Add(line.Size(), "bytes")
				_, err = w.Write(append(line.Data, '\n'))
			}
			if err != nil {
				return errors.Join(err, w.Flush())
			}
		}
	}
	return w.Flush()
}

type auditVerifyCmd struct {
	File        string        `arg:"" optional:"" help:"File of exported lines, or - for standard input (default: the log itself)."`
	Key         []string      `placeholder:"BASE64" help:"Accept the signatures of this public key, too. May be repeated."`
	Checkpoints string        `placeholder:"FILE" help:"File of checkpoints that were sent to another place. The log must contain them."`
	Output      outputFlag    `embed:""`
	Place       auditLogFlags `embed:""`
}

// errChanged is the error that the audit log is not as it was written.
var errChanged = errors.New("the audit log was changed after it was written; the lines marked wrong say where")

// errNothingWritten is the error that a folder has neither audit entries nor checkpoints.
var errNothingWritten = errors.New("there are no audit entries and no checkpoints to verify; " +
	"check that --data names the folder of a server that writes an audit log")

// Run verifies the audit log. It prints a line for each chain, and what is wrong with the chain below it.
func (c *auditVerifyCmd) Run(ctx context.Context, p *process) error {
	r, heads, err := c.Place.open(ctx, p)
	if err != nil {
		return err
	}
	v := audit.Verifier{Keys: append(c.Key, r.Key.PublicKey())}
	if c.Checkpoints != "" {
		if v.Known, err = audit.ReadCheckpoints(c.Checkpoints); err != nil {
			return err
		}
	}
	progress := terminal.NewProgress(p.stderr, "audit verify", p.quiet)
	defer progress.End()
	v.OnBytes = func(n int64) { progress.Add(n, "bytes") }
	var all []audit.Report
	switch c.File {
	case "":
		var ids []string
		if ids, err = audit.ListChains(r.Dir); err == nil {
			progress.Set(terminal.State{Total: r.SumSizes(ids), Unit: "bytes"})
			all, err = v.Verify(r.Dir, heads)
		}
	case "-":
		all, err = v.VerifyLines(p.stdin)
	default:
		var f *os.File
		if f, err = smallfile.Open(c.File); err == nil {
			if info, err := f.Stat(); err == nil {
				progress.Set(terminal.State{Total: info.Size(), Unit: "bytes"})
			}
			all, err = v.VerifyLines(f)
			_ = f.Close() // an error of Close does not matter, because the file was only read
		}
	}
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errNothingWritten
	}
	progress.End()
	faults := slices.ContainsFunc(all, func(one audit.Report) bool { return len(one.Faults) > 0 })
	value := map[string]any{"chains": all, "public_key": r.Key.PublicKey(), "unchanged": !faults}
	err = c.Output.print(p.stdout, value, func(w io.Writer) error {
		for _, one := range all {
			fmt.Fprintf(w, "chain %s: entries %d to %d, ", one.Chain, one.First, one.Last)
			if one.Signed > 0 {
				fmt.Fprintf(w, "signed up to entry %d at %s\n", one.Signed, one.SignedAt.UTC().Format(time.RFC3339))
			} else {
				fmt.Fprintln(w, "not signed")
			}
			for _, fault := range one.Faults {
				fmt.Fprintln(w, "  wrong:", terminal.Printable(fault))
			}
		}
		_, err := fmt.Fprintln(w, "public key", r.Key.PublicKey())
		return err
	})
	switch {
	case err != nil:
		return err
	case faults:
		return errChanged
	case !c.Output.JSON:
		_, err = fmt.Fprintln(p.stdout, "the log is unchanged")
	}
	return err
}

// auditPrinter prints audit entries, as a table or as lines of JSON.
type auditPrinter struct {
	w    io.Writer
	json bool
}

// printEntries prints entries in their order, or if reverse is true, in the opposite order.
func (p auditPrinter) printEntries(all []audit.Entry, reverse bool) error {
	var table terminal.Table
	for i := range all {
		e := &all[i]
		if reverse {
			e = &all[len(all)-1-i]
		}
		if p.json {
			if err := json.NewEncoder(p.w).Encode(e); err != nil {
				return err
			}
			continue
		}
		cells := []string{e.At.UTC().Format(time.RFC3339), e.Caller, e.Role, string(e.Action), strings.Trim(e.Source+"/"+e.Kind, "/"),
			fmt.Sprint(e.Rows), describeRecords(e), e.What, e.Request}
		for i, text := range cells {
			if cells[i] = terminal.Printable(text); text == "" {
				cells[i] = "-"
			}
		}
		table.Add(cells...)
	}
	return table.Print(p.w)
}

// describeRecords returns the id of the first record of an audit entry, and how many more records it has.
func describeRecords(e *audit.Entry) string {
	switch n := len(e.IDs); {
	case e.Count > 0:
		return fmt.Sprintf("%d answers", e.Count)
	case n == 0:
		return ""
	case n == 1:
		return e.IDs[0]
	default:
		return fmt.Sprintf("%s and %d more", e.IDs[0], n-1)
	}
}
