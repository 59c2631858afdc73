// The doctor and bugreport commands: they look for what is wrong, and write what is known about a server into one file.

package main

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/diagnostics"
	"understudy/internal/doctor"
)

type doctorCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints what is wrong and what mends it. It returns an error if something does not work.
func (c *doctorCmd) Run(ctx context.Context, p *process) error {
	o, _ := c.Place.prepareDoctor(ctx, p)
	found := doctor.Check(ctx, o)
	if c.Output.JSON {
		return errors.Join(json.NewEncoder(p.stdout).Encode(found), countFaults(found))
	}
	return printFindings(p.stdout, found)
}

// prepareDoctor reads what the checks need. server is nil if no server that listens uses the data folder.
func (c *dataFlags) prepareDoctor(ctx context.Context, p *process) (o doctor.Options, server *admin) {
	cfg, folder, err := c.readSettings(p)
	o = doctor.Options{Data: c.Data, Folder: folder, Secrets: config.FileSecrets(folder), Now: time.Now}
	if err == nil {
		o.Data = cfg.Data
		var k checked
		if k, err = checkSettings(ctx, cfg, folder); err == nil {
			o.Settings, o.Warnings = cfg, append(k.warnings, k.weak...)
		}
		if cfg.File != "" { // the sources of a demo have no address but in its process
			o.Sources = k.sources
		}
	}
	o.Invalid = err
	if run, err := datadir.ReadRunning(o.Data); err == nil && o.Data != "" {
		server = newLocalAdmin(run)
		o.Ask = func(ctx context.Context, path string, into any) error {
			return server.ask(ctx, http.MethodGet, path, nil, into)
		}
	}
	return o, server
}

// printFindings prints a line for each finding, and what mends it below. Nothing is cut. It returns an error if something does not work.
func printFindings(w io.Writer, found []doctor.Finding) error {
	var table terminal.Table
	for _, f := range found {
		table.Add(f.State, f.Check, terminal.Printable(f.Of), terminal.Printable(f.Text))
	}
	for i, line := range table.Lines(0) {
		fmt.Fprintln(w, line)
		if mend := found[i].Mend; mend != "" {
			fmt.Fprintln(w, "         mend:", terminal.Printable(mend))
		}
	}
	return countFaults(found)
}

// countFaults returns an error if a finding is a fault.
func countFaults(found []doctor.Finding) error {
	n := 0
	for _, f := range found {
		if f.State == doctor.Fault {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return errors.New(formatCount(n, "fault"))
}

type bugreportCmd struct {
	To    string    `arg:"" optional:"" name:"file" help:"New file (default understudy-bugreport-DATE.zip)."`
	Place dataFlags `embed:""`
}

// reportNote is the first file of a report.
const reportNote = `This report has no secrets, no records and no lines of logs, which may contain both.
It has names: of sources, roles, credentials, hosts and files. Read it before you send it.
`

// Run writes a report. What a server would not answer is left out.
func (c *bugreportCmd) Run(ctx context.Context, p *process) (err error) {
	to := cmp.Or(c.To, time.Now().UTC().Format("understudy-bugreport-20060102-150405.zip"))
	f, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%s cannot be made: %w; name another file", to, stripPath(err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z := zip.NewWriter(f)
	add := func(name string, data []byte) {
		w, werr := z.Create(name)
		if werr == nil {
			_, werr = w.Write(data)
		}
		err = errors.Join(err, werr)
	}
	add("README.txt", []byte(reportNote))
	add("versions.txt", fmt.Appendf(nil, "%s\n%s %s, %d processors\n", describeVersion(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()))
	o, server := c.Place.prepareDoctor(ctx, p)
	findings, jerr := json.MarshalIndent(doctor.Check(ctx, o), "", "  ")
	add("doctor.json", findings)
	if o.Settings != nil {
		var lines []byte
		for _, v := range config.Values(*o.Settings) {
			lines = fmt.Appendf(lines, "%s: %s\n", v.Name, v.Text)
		}
		add("settings.txt", lines)
	}
	if server != nil {
		paths := map[string]string{"health.json": "/-/health", "stats.json": "/-/stats", "locks.json": "/-/locks?format=json"}
		var list diagnostics.ProfileList
		if server.ask(ctx, http.MethodGet, "/-/profile?format=json", nil, &list) == nil && len(list.Kept) > 0 {
			paths[list.Kept[0].FileName()] = "/-/profile/kept/" + url.PathEscape(list.Kept[0].ID)
		}
		for name, path := range paths {
			resp, err := server.send(ctx, http.MethodGet, path, nil)
			if err != nil {
				continue
			}
			data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
			if errors.Join(err, resp.Body.Close()) == nil {
				add(name, data)
			}
		}
	}
	if err = errors.Join(err, jerr, z.Close()); err == nil {
		_, err = fmt.Fprintln(p.stdout, to)
	}
	return err
}
