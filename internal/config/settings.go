// Package config reads the settings file and says what is wrong with it: a struct
// for each section, with its defaults and its checks.
package config

import (
	"cmp"
	"time"

	"understudy/mirror/shadow"
)

// Settings is understudy.yml. A missing setting has a good zero value; names and
// defaults are in docs/settings.md, which a test compares with these tags.
type Settings struct {
	Data        string                           `yaml:"data"`
	Viewer      viewerConfig                     `yaml:"viewer"`
	Proxies     []string                         `yaml:"proxies"` // in front of viewer and drop-ins; default: none are believed
	Sources     map[string]*Source               `yaml:"sources"`
	Credentials []*credentialConfig              `yaml:"credentials"`
	Roles       map[string]map[string]roleConfig `yaml:"roles"`
	Mirror      Mirror                           `yaml:"mirror"`
	Store       storeConfig                      `yaml:"store"`
	Limits      Limits                           `yaml:"limits"`
	Jobs        jobsConfig                       `yaml:"jobs"`
	Sync        syncConfig                       `yaml:"sync"`
	Retention   map[string]map[string]Duration   `yaml:"retention"` // how long records are kept, by source and kind; default: for ever
	Log         logConfig                        `yaml:"log"`
	Feed        feedConfig                       `yaml:"feed"`
	Search      searchConfig                     `yaml:"search"`
	Webhooks    []*Webhook                       `yaml:"webhooks"`
	Audit       auditConfig                      `yaml:"audit"`
	Forecasts   []*forecastConfig                `yaml:"forecasts"`
	Watches     watchesConfig                    `yaml:"watches"`
	Mail        mailConfig                       `yaml:"mail"`
	Connect     *connectConfig                   `yaml:"connect"` // nil: there is no proxy
}

// headerConfig says how a proxy names people.
type headerConfig struct {
	Name  string   `yaml:"name"`  // of the header with the person's name
	Roles string   `yaml:"roles"` // of the one with the groups
	From  []string `yaml:"from"`  // the proxies
}

// oidcConfig is a provider of OpenID Connect.
type oidcConfig struct {
	Issuer  string    `yaml:"issuer"`
	Client  string    `yaml:"client"`
	Secret  SecretRef `yaml:"secret"`  // file:PATH or cmd:COMMAND
	Groups  string    `yaml:"groups"`  // the claim, default groups
	Roles   rules     `yaml:"roles"`   // role by group; the first that fits counts
	Domains rules     `yaml:"domains"` // role by domain of a verified mail address
}

type viewerConfig struct {
	Listen      string       `yaml:"listen"`     // default 127.0.0.1:4114
	PublicURL   string       `yaml:"public_url"` // what the browser's address bar shows, when it is not listen
	SignIn      string       `yaml:"sign_in"`    // none, users or header; default none
	Users       string       `yaml:"users"`      // the file of users, default ./users
	Header      headerConfig `yaml:"header"`
	OIDC        oidcConfig   `yaml:"oidc"`
	ExportRows  int          `yaml:"export_rows"`
	Exports     int          `yaml:"exports"`      // at once, default 4
	ExportsEach int          `yaml:"exports_each"` // of one credential, default half of them
	ExportTime  Duration     `yaml:"export_time"`
	Role        string       `yaml:"role"` // role of loopback callers without credentials
}

type Source struct {
	Spec        string      `yaml:"spec"`     // a built-in name or the path of a .yaml
	Generic     string      `yaml:"generic"`  // in place of a spec: upstream's URL
	Loopback    bool        `yaml:"loopback"` // of a generic source: programs on this machine need no credential; default false
	Upstream    string      `yaml:"upstream"` // "" = the spec's hosts
	User        string      `yaml:"user"`
	Login       string      `yaml:"login"`  // the name sent with the secret; default the user
	Secret      SecretRef   `yaml:"secret"` // file:PATH or cmd:COMMAND
	Pool        []SecretRef `yaml:"pool"`   // more secrets of the account, whose limits add up
	Listen      string      `yaml:"listen"` // default 127.0.0.1 and the spec's port
	PublicURL   string      `yaml:"public_url"`
	Rate        float64     `yaml:"rate"`        // requests a second, default 10
	Concurrency int         `yaml:"concurrency"` // at once, default 20
	Polls       []string    `yaml:"polls"`       // lists kept warm: kinds, or paths with a query; default calls, messages, conferences
	MaxBody     size        `yaml:"max_body"`    // an answer's size, default see MaxBody
	Sync        []string    `yaml:"sync"`        // kinds kept whole; default none
	Roots       []string    `yaml:"roots"`       // accounts or repositories besides the user's: their names, all, asked; default none
	Media       []string    `yaml:"media"`       // kinds whose contents are kept; default none
	MaxMedia    size        `yaml:"max_media"`   // a content's size, default 1GiB

	Answers answersConfig `yaml:"answers"` // what lists are answered from first: auto, upstream, records; also by kind
	Ages    string        `yaml:"ages"`    // upstream: answers go by what their headers say of their age, too; own: they do not; default own
	Checks  float64       `yaml:"checks"`  // lists made from records that are asked upstream, too, a minute; default 6

	Token    tokenConfig    `yaml:"token"` // what the secrets are exchanged for
	Timeouts timeoutsConfig `yaml:"timeouts"`
	Headers  headersConfig  `yaml:"headers"`
}

// headersConfig adds to the header fields that the spec names.
type headersConfig struct {
	Send   map[string]string `yaml:"send"`   // sent with every request, in place of the spec's of that name
	Ignore []string          `yaml:"ignore"` // of requests: they mean nothing to the API
	Pass   []string          `yaml:"pass"`   // of requests to a generic source: passed, whatever they name
}

// timeoutsConfig bounds one try of upstream.
type timeoutsConfig struct {
	Connect   Duration `yaml:"connect"`    // default 5s
	FirstByte Duration `yaml:"first_byte"` // default 25s
	Stall     Duration `yaml:"stall"`      // between two reads of a body, default 10s
	Total     Duration `yaml:"total"`      // default 30s
}

type credentialConfig struct {
	Name     string    `yaml:"name"`
	Source   string    `yaml:"source"`
	User     string    `yaml:"user"`
	Secret   SecretRef `yaml:"secret"`
	Role     string    `yaml:"role"`
	Allow    []string  `yaml:"allow"` // "POST /2010-04-01/Accounts/*/Messages.json"
	MaxStale *Duration `yaml:"max_stale"`
	Expires  date      `yaml:"expires"`
	Rate     float64   `yaml:"rate"`      // requests in per; default: no bound
	Per      Duration  `yaml:"per"`       // default 1s
	From     []string  `yaml:"addresses"` // where it may come from; default: everywhere
}

type Mirror struct {
	Hot    size     `yaml:"hot"`    // default by the memory there is, see Caches
	Newest Duration `yaml:"newest"` // default 30s
	Older  Duration `yaml:"older"`  // default 5m
	Final  Duration `yaml:"final"`  // default 24h
	Stale  Duration `yaml:"stale"`  // default 5m
	Hard   Duration `yaml:"hard"`   // default 720h

	Other    Duration `yaml:"other"`     // default 30s
	NotFound Duration `yaml:"not_found"` // default 10s
	Records  Duration `yaml:"records"`   // default 24h
	Wait     Duration `yaml:"wait"`      // default 8s
	Try      Duration `yaml:"try"`       // default 30s
}

// Limits bounds what goes on at once, and how long a request may take to
// come and to be read.
type Limits struct {
	Memory      size     `yaml:"memory"`       // of the whole process, default none or the container's
	Waiters     int      `yaml:"waiters"`      // readers that wait for upstream, default 1024
	WaitersEach int      `yaml:"waiters_each"` // of one credential, default 256
	Flights     int      `yaml:"flights"`      // fetches under way, default 512
	Behind      int      `yaml:"behind"`       // of these, with no reader waiting, default 256
	Hints       int      `yaml:"hints"`        // records lately hinted at, default 1024
	Lists       int      `yaml:"lists"`        // lists being made from records, default 32
	Queue       int      `yaml:"queue"`        // waiting for one source's budget, default 1000
	Writes      int      `yaml:"writes"`       // under way to one source, half of them of one credential, default 64
	Connections int      `yaml:"connections"`  // of one port, default 4096
	Express     *size    `yaml:"express"`      // requests that one drop-in remembers, default see Caches; 0: it has no express lane
	Headers     size     `yaml:"headers"`      // a request's head, default 32KiB
	RequestBody size     `yaml:"request_body"` // a write's body, default 1MiB
	HeadTime    Duration `yaml:"head_time"`    // for a request's head to come, default 10s
	ReadTime    Duration `yaml:"read_time"`    // for a whole request to come, default 60s
	WriteTime   Duration `yaml:"write_time"`   // for an answer to be read, default 2m
	IdleTime    Duration `yaml:"idle_time"`    // a connection may wait for its next request, default 2m
}

// defaults fills in what this package itself looks at.
func (l *Limits) Defaults() {
	l.Writes = cmp.Or(l.Writes, 64)
	l.Connections = cmp.Or(l.Connections, 4096)
	l.Headers = cmp.Or(l.Headers, 32<<10)
	l.RequestBody = cmp.Or(l.RequestBody, 1<<20)
	l.HeadTime = cmp.Or(l.HeadTime, Duration(10*time.Second))
	l.ReadTime = cmp.Or(l.ReadTime, Duration(time.Minute))
	l.WriteTime = cmp.Or(l.WriteTime, Duration(2*time.Minute))
	l.IdleTime = cmp.Or(l.IdleTime, Duration(2*time.Minute))
}

type storeConfig struct {
	DSN   string `yaml:"dsn"`   // "" = understudy.db in the data folder
	Limit size   `yaml:"limit"` // default 10GiB

	EraseAfter Duration `yaml:"erase_after"` // what is to be erased is gathered for; default 10s

	Media     size `yaml:"media"`      // of all contents that are kept, default 1GiB
	MediaFile size `yaml:"media_file"` // of one of them, default 64MiB
}

type logConfig struct {
	Access string   `yaml:"access"` // file of the access log; default "": standard error; "off" for none
	Format string   `yaml:"format"` // of both logs: text or json; default text
	Level  logLevel `yaml:"level"`  // of the application's log: debug, info, warn or error; default info
}

// FormatJSON is the log.format of JSON lines.
const FormatJSON = "json"

const (
	defaultData   = "./understudy-data"
	defaultViewer = "127.0.0.1:4114"
	defaultUsers  = "./users"
	defaultLimit  = 10 << 30
)

// defaults fills in what stands at the top level; packages know their own zeros.
func (c *Settings) defaults() {
	if c.Data == "" {
		c.Data = defaultData
	}
	if c.Viewer.Listen == "" {
		c.Viewer.Listen = defaultViewer
	}
	if c.Store.Limit == 0 {
		c.Store.Limit = defaultLimit
	}
	if c.Viewer.Users == "" {
		c.Viewer.Users = defaultUsers
	}
	if c.Connect != nil {
		c.Connect.Listen = cmp.Or(c.Connect.Listen, defaultConnect)
	}
	for _, s := range c.Sources {
		if s != nil && s.Ages == agesUpstream && s.Answers == nil {
			s.Answers = answersConfig{"": shadow.Upstream} // of a list made from records upstream says nothing
		}
	}
	c.Limits.Defaults()
}

// The words of sources.NAME.ages.
const (
	agesOwn      = "own"
	agesUpstream = "upstream"
)

func (d Duration) Std() time.Duration { return time.Duration(d) }
