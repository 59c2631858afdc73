// The credentials commands: they make, list, rotate and revoke credentials of programs on a running server.

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"understudy/cmd/understudy/terminal"
	"understudy/internal/credentials"
	"understudy/internal/diagnostics"
)

type credentialsCmd struct {
	Make   credentialsMakeCmd   `cmd:"" help:"Create a credential and print its secret, once."`
	List   credentialsListCmd   `cmd:"" help:"List the credentials created with make."`
	Rotate credentialsRotateCmd `cmd:"" help:"Give a credential a new secret. The old secret stays valid for a while."`
	Revoke credentialsRevokeCmd `cmd:"" help:"Remove a credential at once and end its open requests."`
}

const credentialsPath = "/-/credentials"

type credentialsMakeCmd struct {
	Name      string        `arg:"" help:"Name of the credential, as logs and the audit log show it."`
	Source    string        `required:"" placeholder:"NAME" help:"Source that the program asks."`
	Role      string        `required:"" placeholder:"ROLE" help:"Role that decides what the program sees."`
	Allow     []string      `sep:"none" placeholder:"'METHOD /PATH'" help:"An allowed request beyond reading. May be repeated."`
	MaxStale  time.Duration `placeholder:"DURATION" help:"Oldest answer that the program accepts, such as 10m (default: mirror.stale)."`
	Expires   string        `placeholder:"DATE" help:"End of the credential: 2027-01-01, an RFC 3339 time, or 30d from now (default: never)."`
	Rate      float64       `placeholder:"N" help:"Largest number of requests per second (default: no limit)."`
	Addresses []string      `placeholder:"CIDR" help:"Network that requests may come from, such as 10.0.0.0/8 (default: any)."`
	Output    outputFlag    `embed:""`
	Place     dataFlags     `embed:""`
}

// Run asks the server to make a credential, and prints it.
func (c *credentialsMakeCmd) Run(ctx context.Context, p *process) error {
	m := diagnostics.MakeCredential{Name: c.Name, Scope: credentials.Scope{
		Source: c.Source, Role: c.Role, Allow: c.Allow, Rate: c.Rate, Addresses: c.Addresses,
	}}
	if c.MaxStale != 0 {
		m.MaxStale = c.MaxStale.String()
	}
	if c.Expires != "" {
		at, err := credentials.ParseDate(c.Expires, time.Now().Add)
		if err != nil {
			return usageError{fmt.Errorf("--expires: %w", err)}
		}
		m.Expires = at.Format(time.RFC3339Nano)
	}
	return c.Place.askServer(ctx, p, true, func(ctx context.Context, server *admin) error {
		var shown credentials.Shown
		if err := server.ask(ctx, http.MethodPost, credentialsPath, m, &shown); err != nil {
			return err
		}
		return c.Output.print(p.stdout, shown, func(w io.Writer) error { return printShown(w, shown) })
	})
}

func printShown(w io.Writer, s credentials.Shown) error {
	_, err := fmt.Fprintf(w, "name    %s\nuser    %s\nsecret  %s  (it is not shown again)\n", s.Name, s.User, s.Secret)
	return err
}

type credentialsListCmd struct {
	Output outputFlag `embed:""`
	Place  dataFlags  `embed:""`
}

// Run prints all credentials.
func (c *credentialsListCmd) Run(ctx context.Context, p *process) error {
	var list diagnostics.CredentialList
	if err := c.Place.ask(ctx, p, http.MethodGet, credentialsPath, nil, &list); err != nil {
		return err
	}
	return c.Output.print(p.stdout, list, func(w io.Writer) error { return printCredentials(w, list.Credentials) })
}

// printCredentials prints a table that has a line for each secret of each credential.
func printCredentials(w io.Writer, all []credentials.Credential) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No credential was created with understudy credentials make. Those in the settings file are not listed here.")
		return err
	}
	table := terminal.Table{{"NAME", "SOURCE", "ROLE", "USER", "MADE", "END", "LIMITS"}}
	for _, c := range all {
		for _, s := range c.Secrets {
			end := "never"
			for _, at := range []*time.Time{c.Expires, s.Until} {
				if at != nil {
					end = at.UTC().Format(time.RFC3339)
				}
			}
			table.Add(c.Name, c.Source, c.Role, s.User, s.Made.UTC().Format(time.RFC3339), end, scopeLimits(c.Scope))
		}
	}
	return table.Print(w)
}

// scopeLimits returns in words what a credential permits besides reading, and its limits.
func scopeLimits(s credentials.Scope) string {
	var all []string
	for _, a := range s.Allow {
		all = append(all, "allows "+a)
	}
	if s.MaxStale != "" {
		all = append(all, "at most "+s.MaxStale+" stale")
	}
	if rate := s.RateText(); rate != "" {
		all = append(all, rate)
	}
	if len(s.Addresses) > 0 {
		all = append(all, "from "+strings.Join(s.Addresses, ", "))
	}
	return strings.Join(all, "; ")
}

type credentialsRotateCmd struct {
	Name    string        `arg:"" help:"Name of the credential."`
	Overlap time.Duration `default:"24h" placeholder:"DURATION" help:"How long the old secret stays valid (default ${default})."`
	Output  outputFlag    `embed:""`
	Place   dataFlags     `embed:""`
}

// Run asks the server for a new secret of a credential, and prints it.
func (c *credentialsRotateCmd) Run(ctx context.Context, p *process) error {
	return c.Place.askServer(ctx, p, true, func(ctx context.Context, server *admin) error {
		var shown credentials.Shown
		body := diagnostics.RotateCredential{Overlap: c.Overlap.String()}
		if err := server.ask(ctx, http.MethodPost, credentialsPath+"/"+url.PathEscape(c.Name)+"/rotate", body, &shown); err != nil {
			return err
		}
		return c.Output.print(p.stdout, shown, func(w io.Writer) error { return printShown(w, shown) })
	})
}

type credentialsRevokeCmd struct {
	Name  string    `arg:"" help:"Name of the credential."`
	Place dataFlags `embed:""`
}

// Run asks the server to revoke a credential.
func (c *credentialsRevokeCmd) Run(ctx context.Context, p *process) error {
	if err := c.Place.ask(ctx, p, http.MethodPost, credentialsPath+"/"+url.PathEscape(c.Name)+"/revoke", struct{}{}, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "revoked %s\n", c.Name)
	return err
}
