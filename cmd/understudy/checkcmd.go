// The check, spec and ca commands: they read settings, specs and other files, and do not start a server.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/specs"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/doctor"
	"understudy/internal/feed"
	"understudy/internal/signin"
	"understudy/internal/smallfile"
	"understudy/internal/webhook"
	"understudy/mirror"
	"understudy/spec"
)

type checkCmd struct {
	Config string     `default:"understudy.yml" placeholder:"FILE" help:"Settings file (default ${default})."`
	Ask    bool       `help:"Also ask each upstream once, and say what its answer proves."`
	Output outputFlag `embed:""`
}

// Run checks the settings and prints what they mean. If they are wrong, it returns the first error.
func (c *checkCmd) Run(ctx context.Context, p *process) error {
	cfg, err := config.Read(c.Config, p.env)
	if err != nil {
		return err
	}
	k, err := checkSettings(ctx, cfg, filepath.Dir(c.Config))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Config, err)
	}
	for _, warning := range k.warnings {
		fmt.Fprintln(p.stderr, "warning:", warning)
	}
	result := describeSettings(cfg, k.sources, k.gate)
	if k.users != nil {
		result.Users = len(k.users.All())
	}
	withTotals := len(k.weak) == 0
	if err := c.Output.print(p.stdout, result, func(w io.Writer) error { return result.write(w, k.users != nil, withTotals) }); err != nil {
		return err
	}
	if !withTotals {
		return fmt.Errorf("%s: %s", c.Config, strings.Join(k.weak, "\n"))
	}
	if c.Ask {
		o := doctor.Options{Settings: cfg, Sources: k.sources, Secrets: config.FileSecrets(filepath.Dir(c.Config)), Now: time.Now}
		return printFindings(p.stdout, doctor.CheckSources(ctx, o))
	}
	return nil
}

// checked is what checkSettings has read.
type checked struct {
	sources  []*spec.Source
	gate     *access.Gate
	users    *signin.Users // nil if nobody signs in with a password
	warnings []string
	weak     []string // what is wrong with secrets that can be guessed
}

// checkSettings reads what the settings name, except secrets that a command prints. If they are wrong, it returns the first error.
func checkSettings(ctx context.Context, cfg *config.Settings, folder string) (k checked, err error) {
	if k.sources, k.gate, err = readGate(cfg, folder); err != nil {
		return k, understudy.StripPrefixes(err)
	}
	specs := map[string]*spec.Spec{}
	var blanks []string
	read := func(ctx context.Context, ref config.SecretRef) (understudy.Secret, error) {
		return checkSecret(ctx, ref, folder)
	}
	warn := func(warning string) { blanks = append(blanks, warning) }
	if err := config.CheckSecrets(ctx, cfg, config.WarnOfBlanks(read, cfg, warn)); err != nil {
		return k, err
	}
	for _, src := range k.sources {
		specs[src.Name] = src.Spec
		s := cfg.Sources[src.Name]
		if _, err := s.ReadSecrets(ctx, src.Spec, read); err != nil && src.Spec.Auth.Style != "none" {
			return k, fmt.Errorf("sources.%s.%w", src.Name, err)
		}
	}
	slices.Sort(blanks) // sorting lets Compact remove a warning about the same file that several settings have caused
	var creds []callers.Credential
	for _, cred := range cfg.Credentials {
		secret, err := read(ctx, cred.Secret)
		if err != nil {
			return k, fmt.Errorf("credentials: %s: secret: %w", cred.Name, err)
		}
		if secret != (understudy.Secret{}) {
			creds = append(creds, callers.Credential{Name: cred.Name, Secret: secret})
		}
	}
	if cfg.TLS.Cert != "" {
		if _, err := cfg.TLS.Read(cfg, folder, ""); err != nil {
			return k, err
		}
	}
	if cfg.TLS.ACME != nil {
		if _, err := cfg.TLS.ACME.ReadOptions(folder); err != nil {
			return k, fmt.Errorf("tls.acme.ca: %w", err)
		}
	}
	if k.users, err = cfg.ReadUsers(folder); err != nil {
		return k, err
	}
	provider, err := cfg.ReadProvider(ctx, read)
	if err != nil {
		return k, err
	}
	for _, hook := range cfg.Webhooks {
		if err := checkHook(ctx, hook, k.gate, specs[hook.Source], folder); err != nil {
			return k, fmt.Errorf("webhooks: %s: %w", hook.Name, understudy.StripPrefixes(err))
		}
	}
	if _, err := config.ReadTables(ctx, cfg, k.sources, k.gate, read); err != nil {
		return k, err
	}
	if _, err := cfg.CheckAlerts(k.gate, k.sources); err != nil {
		return k, err
	}
	k.warnings = append(cfg.Warnings(folder, k.sources), slices.Compact(blanks)...)
	k.weak = config.WeakSecrets(creds)
	if provider != nil && provider.Secret != (understudy.Secret{}) {
		k.weak = append(k.weak, config.WeakSecret("viewer.oidc.secret", provider.Secret)...)
	}
	return k, nil
}

// checkResult is what the settings mean. The keys of Finds and Does are roles, and below them sources.
type checkResult struct {
	Sources     []checkedSource                `json:"sources"`
	Finds       map[string]map[string][]string `json:"finds,omitempty"` // which records each role may find, as rules in words
	Does        map[string]map[string][]string `json:"does,omitempty"`  // which actions each role may run
	Users       int                            `json:"users"`
	Credentials int                            `json:"credentials"`
	Roles       int                            `json:"roles"`
	Viewer      string                         `json:"viewer"`
	Data        string                         `json:"data"`
}

// checkedSource is a source in the settings.
type checkedSource struct {
	Name     string   `json:"name"`
	API      string   `json:"api"`
	Upstream string   `json:"upstream"`
	DropIn   string   `json:"drop_in"`
	Kinds    int      `json:"kinds"`
	Polls    []string `json:"polls"`
	Cost     string   `json:"cost,omitempty"` // how many requests a day the polls send, in words
}

// describeSettings returns what the settings mean: the sources, the roles and their rules.
func describeSettings(cfg *config.Settings, sources []*spec.Source, gate *access.Gate) *checkResult {
	policy := cfg.Policy()
	r := &checkResult{Finds: map[string]map[string][]string{}, Does: policy.Do, Credentials: len(cfg.Credentials), Roles: len(cfg.Roles),
		Viewer: cfg.Viewer.Listen, Data: cfg.Data}
	for _, src := range sources {
		s := cfg.Sources[src.Name]
		one := checkedSource{Name: src.Name, API: src.Spec.Title, Upstream: s.Upstream, DropIn: s.Listen, Kinds: len(src.Spec.Kinds),
			Polls: src.Polls}
		one.Upstream = cmp.Or(one.Upstream, src.Spec.Hosts[0].URL)
		if lists, cost := s.PollCost(src, config.Ages(&cfg.Mirror)); lists > 0 {
			one.Cost = fmt.Sprintf("polls of %s: about %d requests a day while people read (up to %d while every poll finds something new), "+
				"about %d when nobody has read for %d minutes", formatCount(lists, "list"), cost.Read, cost.Busy, cost.Idle,
				int(mirror.IdleAfter.Minutes()))
		}
		r.Sources = append(r.Sources, one)
	}
	for role, rows := range policy.Rows {
		r.Finds[role] = map[string][]string{}
		for source := range rows {
			r.Finds[role][source] = gate.DescribeRules(role, source)
		}
	}
	return r
}

// write prints the result as tables and sentences. If withTotals is true, the last line has totals; if withUsers is
// true too, they include the number of users.
func (r *checkResult) write(w io.Writer, withUsers, withTotals bool) error {
	table := terminal.Table{{"SOURCE", "API", "UPSTREAM", "DROP-IN", "KINDS", "KEPT WARM"}}
	for _, s := range r.Sources {
		table.Add(s.Name, s.API, s.Upstream, s.DropIn, strconv.Itoa(s.Kinds), strings.Join(s.Polls, ", "))
	}
	if err := table.Print(w); err != nil {
		return err
	}
	for _, s := range r.Sources {
		if s.Cost != "" {
			fmt.Fprintf(w, "%s: %s\n", s.Name, s.Cost)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(r.Finds)) {
		for _, source := range slices.Sorted(maps.Keys(r.Finds[role])) {
			fmt.Fprintf(w, "role %s finds these records of %s\n", role, source)
			var table terminal.Table
			for _, line := range r.Finds[role][source] {
				kind, what, _ := strings.Cut(line, ": ")
				table.Add("  "+kind, what)
			}
			if err := table.Print(w); err != nil {
				return err
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(r.Does)) {
		for _, source := range slices.Sorted(maps.Keys(r.Does[role])) {
			fmt.Fprintf(w, "role %s can do in %s: %s\n", role, source, strings.Join(r.Does[role][source], ", "))
		}
	}
	if !withTotals {
		return nil
	}
	signIn := ""
	if withUsers {
		signIn = formatCount(r.Users, "user") + ", "
	}
	_, err := fmt.Fprintf(w, "%s%s, %s; viewer on %s; data in %s\n", signIn, formatCount(r.Credentials, "credential"),
		formatCount(r.Roles, "role"), r.Viewer, r.Data)
	return err
}

// readGate reads the specs of the sources. It returns the gate that the roles define.
func readGate(cfg *config.Settings, folder string) (sources []*spec.Source, gate *access.Gate, err error) {
	if sources, err = cfg.ReadSources(folder); err != nil {
		return nil, nil, err
	}
	specs := map[string]*spec.Spec{}
	for _, src := range sources {
		specs[src.Name] = src.Spec
	}
	o := cfg.Policy()
	o.Specs = specs
	gate, err = access.NewWith(o)
	return sources, gate, err
}

// checkHook checks a webhook against the spec and the roles. If the secret is in a file, it also checks the secret.
func checkHook(ctx context.Context, w *config.Webhook, gate *access.Gate, sp *spec.Spec, folder string) error {
	if err := feed.CheckHook(w.Hook(), gate, sp); err != nil {
		return err
	}
	secret, err := checkSecret(ctx, w.Secret, folder)
	if err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	if secret.IsEmpty() {
		return nil
	}
	return webhook.CheckSecret(secret)
}

// checkSecret reads a secret from a file. It does not run a command that prints a secret, because checking settings
// must have no effects; it then returns an empty secret.
func checkSecret(ctx context.Context, ref config.SecretRef, folder string) (understudy.Secret, error) {
	if command, ok := strings.CutPrefix(string(ref), "cmd:"); ok && strings.TrimSpace(command) != "" {
		return understudy.Secret{}, nil
	}
	return config.ReadSecret(ctx, ref, folder)
}

// specCmd has the subcommands of the spec command.
type specCmd struct {
	From specFromCmd `cmd:"" help:"Write a spec from an OpenAPI document, or from the answers of an API."`
	Try  specTryCmd  `cmd:"" help:"Ask the API for two pages of each list of a spec, and print what differs."`
}

// callerFlags has the flags that say how to sign requests to an API.
type callerFlags struct {
	User   string `placeholder:"USER" help:"User for Basic authentication. Without a user the secret is sent as a bearer token."`
	Secret string `placeholder:"file:PATH" help:"Secret of the API, as file:PATH or cmd:COMMAND."`
}

func (c *callerFlags) read(ctx context.Context) (specs.Caller, error) {
	as := specs.Caller{User: c.User}
	if c.Secret == "" {
		return as, nil
	}
	secret, err := config.ReadSecret(ctx, config.SecretRef(c.Secret), ".")
	if err != nil {
		return as, usageError{fmt.Errorf("--secret: %w", err)}
	}
	as.Secret = secret
	return as, nil
}

type specFromCmd struct {
	From   []string    `arg:"" name:"file|url" help:"An OpenAPI document in JSON or YAML, or the URLs of an API's lists."`
	Auth   string      `placeholder:"STYLE" help:"How the secret is sent, such as 'header X-Api-Key' (default: basic or bearer)."`
	As     callerFlags `embed:""`
	Header []string    `placeholder:"NAME:VALUE" sep:"none" help:"A header field that the API requires, such as its version. May be repeated."`
	Path   []string    `placeholder:"PATH" sep:"none" help:"Of a document, use only the lists at this path and below. May be repeated."`
}

// Run drafts a spec and writes it to standard output. It writes what is uncertain to standard error.
func (c *specFromCmd) Run(ctx context.Context, p *process) error {
	as, err := c.As.read(ctx)
	if err != nil {
		return err
	}
	as.Auth = c.Auth
	if as.Headers, err = specs.ReadHeaders(c.Header); err != nil {
		return usageError{err}
	}
	as.Progress = terminal.NewProgress(p.stderr, "spec from", p.quiet || terminal.IsTerminal(p.stdout) && !terminal.IsTerminal(p.stderr))
	defer as.Progress.End()
	return specs.Draw(ctx, c.From, c.Path, as, p.stdout, p.stderr)
}

type specTryCmd struct {
	Spec     string      `arg:"" help:"A spec file ending in .yaml or .yml, or the name of a built-in spec."`
	Upstream string      `placeholder:"URL" help:"URL of the API (default: the first host of the spec)."`
	As       callerFlags `embed:""`
	Var      []string    `placeholder:"NAME=VALUE" sep:"none" help:"Value of a path variable or of a required parameter. May be repeated."`
	Output   outputFlag  `embed:""`
	Rate     float64     `default:"5" placeholder:"N" help:"Requests per second (default ${default})."`
}

// Run compares a spec with an API. It prints a table that has two lines for each list.
func (c *specTryCmd) Run(ctx context.Context, p *process) error {
	as, err := c.As.read(ctx)
	if err != nil {
		return err
	}
	vars, err := specs.ReadVars(c.Var)
	if err != nil {
		return usageError{err}
	}
	progress := terminal.NewProgress(p.stderr, "spec try", p.quiet)
	defer progress.End()
	trial := specs.Trial{Spec: c.Spec, Upstream: c.Upstream, As: as, Vars: vars, Rate: c.Rate, Progress: progress, JSON: c.Output.JSON}
	return specs.Try(ctx, trial, p.stdout)
}

// caCmd prints the certificate with which the proxy signs, so that clients can trust it.
type caCmd dataFlags

// Run prints the certificate with which the proxy signs.
func (c *caCmd) Run(p *process) error {
	return (*dataFlags)(c).printFile(p, datadir.AuthorityFile, "connect in its settings, or with --connect HOST:PORT")
}

// certCmd prints the certificate of the authority for tls: self, so that clients can trust the server.
type certCmd dataFlags

// Run prints the certificate.
func (c *certCmd) Run(p *process) error {
	return (*dataFlags)(c).printFile(p, datadir.CertificateFile, "tls: self in its settings")
}

// printFile prints the path and the text of a certificate in the data folder. with says when a server creates the file.
func (c *dataFlags) printFile(p *process, name, with string) error {
	data, err := c.findData(p)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(filepath.Join(data, name))
	if err != nil {
		return err
	}
	text, err := smallfile.Read(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist; a server creates it when it starts with %s", path, with)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(p.stderr, path)
	_, err = p.stdout.Write(text)
	return err
}
