// Package config reads the settings file and reports what is wrong with it. It has a struct for each section, a table
// of all settings with their defaults and bounds (settings.txt), and the checks that a table cannot express.
package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"understudy/internal/datadir"
	"understudy/internal/store/contents"
	"understudy/mirror"
	"understudy/mirror/shadow"
)

// Settings is understudy.yml. settings.txt has the default, the bounds and the meaning of each setting.
type Settings struct {
	Data        string                           `yaml:"data"`
	Viewer      viewerConfig                     `yaml:"viewer"`
	Proxies     []string                         `yaml:"proxies"`
	TLS         tlsConfig                        `yaml:"tls"`
	Sources     map[string]*Source               `yaml:"sources"`
	Credentials []*credentialConfig              `yaml:"credentials"`
	Roles       map[string]map[string]roleConfig `yaml:"roles"`
	Mirror      Mirror                           `yaml:"mirror"`
	Store       storeConfig                      `yaml:"store"`
	Backup      backupConfig                     `yaml:"backup"`
	Nodes       nodesConfig                      `yaml:"nodes"`
	Limits      Limits                           `yaml:"limits"`
	Jobs        jobsConfig                       `yaml:"jobs"`
	Sync        syncConfig                       `yaml:"sync"`
	Retention   map[string]map[string]Duration   `yaml:"retention"`
	Log         logConfig                        `yaml:"log"`
	Feed        feedConfig                       `yaml:"feed"`
	Search      searchConfig                     `yaml:"search"`
	Webhooks    []*Webhook                       `yaml:"webhooks"`
	Audit       auditConfig                      `yaml:"audit"`
	Forecasts   []*forecastConfig                `yaml:"forecasts"`
	Watches     watchesConfig                    `yaml:"watches"`
	Mail        mailConfig                       `yaml:"mail"`
	Push        pushConfig                       `yaml:"push"`
	Connect     *connectConfig                   `yaml:"connect"` // the settings of the forward proxy; nil if there is none
	Metrics     metricsConfig                    `yaml:"metrics"`
	Tracing     tracingConfig                    `yaml:"tracing"`

	File    string   `yaml:"-"` // the path of the settings file; "" if the settings come from elsewhere
	Renamed []string `yaml:"-"` // a warning for each setting that the file calls by its old name
}

// MetricsName is the name of the port of metricsConfig.
const MetricsName = "metrics"

// metricsConfig says where programs on this machine read /-/metrics without a credential.
type metricsConfig struct {
	Listen string `yaml:"listen"`
}

// tracingConfig says which requests are slow, whether the runtime's events before their end are kept, and where traces are sent.
type tracingConfig struct {
	Endpoint string   `yaml:"endpoint"`
	Slow     Duration `yaml:"slow"`
	Record   bool     `yaml:"record"`
}

// headerConfig says in which headers a reverse proxy names people.
type headerConfig struct {
	Name  string   `yaml:"name"`
	Roles string   `yaml:"roles"`
	From  []string `yaml:"from"`
}

// oidcConfig is a provider of OpenID Connect.
type oidcConfig struct {
	Issuer  string    `yaml:"issuer"`
	Client  string    `yaml:"client"`
	Secret  SecretRef `yaml:"secret"`
	Groups  string    `yaml:"groups"`
	Roles   rules     `yaml:"roles"`
	Domains rules     `yaml:"domains"`
}

type viewerConfig struct {
	Listen      string       `yaml:"listen"`
	PublicURL   string       `yaml:"public_url"`
	SignIn      string       `yaml:"sign_in"`
	Users       string       `yaml:"users"`
	Header      headerConfig `yaml:"header"`
	OIDC        oidcConfig   `yaml:"oidc"`
	ExportRows  int          `yaml:"export_rows"`
	Exports     int          `yaml:"exports"`
	ExportsEach int          `yaml:"exports_each"`
	ExportTime  Duration     `yaml:"export_time"`
	Role        string       `yaml:"role"`
}

type Source struct {
	Spec        string         `yaml:"spec"`
	Generic     string         `yaml:"generic"`
	Loopback    bool           `yaml:"loopback"`
	Upstream    string         `yaml:"upstream"`
	User        string         `yaml:"user"`
	Login       string         `yaml:"auth_user"`
	Secret      SecretRef      `yaml:"secret"`
	Pool        []SecretRef    `yaml:"pool"`
	Listen      string         `yaml:"listen"`
	TLS         string         `yaml:"tls"`
	Clients     Clients        `yaml:"clients"`
	PublicURL   string         `yaml:"public_url"`
	Rate        float64        `yaml:"rate"`
	Concurrency int            `yaml:"concurrency"`
	Polls       []string       `yaml:"polls"`
	MaxBody     size           `yaml:"max_body"`
	Sync        []string       `yaml:"sync"`
	Roots       []string       `yaml:"covers"`
	Media       []string       `yaml:"media"`
	MaxMedia    size           `yaml:"max_media"`
	Answers     answersConfig  `yaml:"lists_from"`
	Ages        string         `yaml:"freshness"`
	Checks      float64        `yaml:"comparisons"`
	Token       tokenConfig    `yaml:"token"`
	Timeouts    timeoutsConfig `yaml:"timeouts"`
	Headers     headersConfig  `yaml:"headers"`
	Tables      tablesConfig   `yaml:"tables"`
}

// headersConfig adds to the header fields of the spec.
type headersConfig struct {
	Send   map[string]string `yaml:"send"`
	Ignore []string          `yaml:"ignore"`
	Pass   []string          `yaml:"pass"`
}

// timeoutsConfig has the timeouts of one attempt to send a request to the upstream.
type timeoutsConfig struct {
	Connect   Duration `yaml:"connect"`
	FirstByte Duration `yaml:"first_byte"`
	Stall     Duration `yaml:"stall"`
	Total     Duration `yaml:"total"`
}

type credentialConfig struct {
	Name     string    `yaml:"name"`
	Source   string    `yaml:"source"`
	User     string    `yaml:"user"`
	Secret   SecretRef `yaml:"secret"`
	Role     string    `yaml:"role"`
	Allow    words     `yaml:"allow"`
	MaxStale *Duration `yaml:"max_stale"`
	Expires  date      `yaml:"expires"`
	Rate     float64   `yaml:"rate"`
	Per      Duration  `yaml:"per"`
	From     []string  `yaml:"addresses"`
}

type Mirror struct {
	Hot      size     `yaml:"memory"`
	Newest   Duration `yaml:"newest"`
	Older    Duration `yaml:"older"`
	Final    Duration `yaml:"settled_age"`
	Stale    Duration `yaml:"stale"`
	Hard     Duration `yaml:"outage_max_age"`
	Other    Duration `yaml:"default_age"`
	NotFound Duration `yaml:"not_found"`
	Records  Duration `yaml:"records"`
	Wait     Duration `yaml:"wait"`
	Try      Duration `yaml:"try"`
}

// Limits limits concurrent work. It also limits the time for receiving a request and for sending a response.
type Limits struct {
	Memory      size     `yaml:"memory"`
	Waiters     int      `yaml:"waiters"`
	WaitersEach int      `yaml:"waiters_each"`
	Flights     int      `yaml:"fetches"`
	Behind      int      `yaml:"background_fetches"`
	Hints       int      `yaml:"change_hints"`
	Lists       int      `yaml:"lists"`
	Queue       int      `yaml:"queue"`
	Writes      int      `yaml:"writes"`
	Connections int      `yaml:"connections"`
	Express     *size    `yaml:"request_memory"`
	Headers     size     `yaml:"headers"`
	RequestBody size     `yaml:"request_body"`
	HeadTime    Duration `yaml:"head_time"`
	ReadTime    Duration `yaml:"read_time"`
	WriteTime   Duration `yaml:"write_time"`
	IdleTime    Duration `yaml:"idle_time"`
}

// SetDefaults sets missing limits to their defaults.
func (l *Limits) SetDefaults() { fillDefaults(l, "limits") }

// searchConfig has the limits of searches.
type searchConfig struct {
	Time        Duration `yaml:"time"`
	Look        int      `yaml:"max_records"`
	Window      int      `yaml:"window"`
	Count       Duration `yaml:"count"`
	Facets      Duration `yaml:"facets"`
	Sum         Duration `yaml:"sum"`
	Columns     size     `yaml:"columns"`
	AtOnce      int      `yaml:"at_once"`
	Exports     int      `yaml:"exports"`
	ExportsEach int      `yaml:"exports_each"`
	Silence     Duration `yaml:"silence"`
	Saved       int      `yaml:"saved"`
	SavedEach   int      `yaml:"saved_each"`
}

// jobsConfig has the limits of jobs.
type jobsConfig struct {
	Workers int      `yaml:"workers"`
	Memory  size     `yaml:"memory"`
	Lease   Duration `yaml:"lease"`
	Keep    int      `yaml:"keep"`
	KeepFor Duration `yaml:"keep_for"`

	Kinds map[string]*jobKindConfig `yaml:"kinds"`
}

// jobKindConfig describes jobs that programs outside the server run.
type jobKindConfig struct {
	Attempts    int      `yaml:"attempts"`
	Concurrency int      `yaml:"concurrency"`
	Once        bool     `yaml:"once"`
	Lease       Duration `yaml:"lease"`
}

// syncConfig says how kinds are kept complete.
type syncConfig struct {
	Horizon Duration `yaml:"horizon"`
	Sweep   Duration `yaml:"sweep"`
	Window  Duration `yaml:"window"`
	Slice   Duration `yaml:"slice"`
	Overlap Duration `yaml:"overlap"`
	Slices  int      `yaml:"slices"`
	Page    int      `yaml:"page"`
	Pages   int      `yaml:"pages"`
}

func Ages(m *Mirror) mirror.Ages {
	return mirror.Ages{
		Newest: m.Newest.Std(), Older: m.Older.Std(), Final: m.Final.Std(), Other: m.Other.Std(), NotFound: m.NotFound.Std(),
		Records: m.Records.Std(),
		Stale:   m.Stale.Std(), Hard: m.Hard.Std(), Wait: m.Wait.Std(), Try: m.Try.Std(),
	}
}

func MirrorLimits(l *Limits) mirror.Limits {
	return mirror.Limits{Waiters: l.Waiters, PerFlow: l.WaitersEach, Flights: l.Flights, Background: l.Behind, Hints: l.Hints, Lists: l.Lists}
}

type storeConfig struct {
	DSN        string   `yaml:"dsn"`
	Limit      size     `yaml:"limit"`
	EraseAfter Duration `yaml:"erase_after"`
	Media      size     `yaml:"media"`
	MediaFile  size     `yaml:"media_file"`
	Contents   string   `yaml:"contents"`
	S3         s3Config `yaml:"s3"`
}

// s3Config says how to reach the buckets of contents and of backups.
type s3Config struct {
	Endpoint string    `yaml:"endpoint"`
	Region   string    `yaml:"region"`
	Key      string    `yaml:"key"`
	Secret   SecretRef `yaml:"secret"`
}

// ReadContents returns where the contents of records are stored, given the data folder. It reads the secret of the bucket.
func (c *storeConfig) ReadContents(ctx context.Context, data string, secrets Secrets) (o contents.Options, err error) {
	o = contents.Options{Dir: filepath.Join(data, datadir.MediaFolder), Limit: int64(c.Media), MaxContentBytes: int64(c.MediaFile)}
	if c.Contents != "" {
		o.S3, err = c.readBucket(ctx, c.Contents, secrets)
	}
	return o, err
}

// OpenArchive returns the folder of a file in a bucket, and the name of the file.
func (c *storeConfig) OpenArchive(ctx context.Context, url string, s Secrets, now func() time.Time) (*contents.Archive, string, error) {
	s3, err := c.readBucket(ctx, url, s)
	if err != nil {
		return nil, "", err
	}
	return contents.OpenArchive(s3, now)
}

// readBucket returns how to reach a bucket. It reads the secret.
func (c *storeConfig) readBucket(ctx context.Context, url string, secrets Secrets) (s contents.S3, err error) {
	s = contents.S3{URL: url, Endpoint: c.S3.Endpoint, Region: c.S3.Region, Key: c.S3.Key}
	if err = c.S3.check(); err != nil {
		return s, err
	}
	if s.Secret, err = secrets(ctx, c.S3.Secret); err != nil {
		err = fmt.Errorf("store.s3.secret: %w", err)
	}
	return s, err
}

// checkContents returns an error if the settings of the contents name no bucket or no key.
func (c *storeConfig) checkContents() error {
	if c.Contents == "" {
		return nil
	}
	_, _, err := contents.ParseS3(c.Contents)
	if err = cmp.Or(err, c.S3.check()); err != nil {
		err = fmt.Errorf("contents: %w", err)
	}
	return err
}

// check returns an error if the settings do not say how to reach a bucket.
func (c *s3Config) check() error {
	if err := checkURL(c.Endpoint); err != nil {
		return fmt.Errorf("store.s3.endpoint: %w", err)
	}
	if c.Key == "" || c.Secret == "" {
		return errors.New("store.s3: the bucket needs a key and a secret")
	}
	return nil
}

// nodesConfig says how processes on the same database reach each other.
type nodesConfig struct {
	URL    string    `yaml:"url"`
	Secret SecretRef `yaml:"secret"`
}

type logConfig struct {
	Access string              `yaml:"access"`
	Format logFormat           `yaml:"format"`
	Level  logLevel            `yaml:"level"`
	Levels map[string]logLevel `yaml:"levels"`
}

// logPackages are the packages that log.levels can name. A name includes the packages below it.
var logPackages = strings.Fields("acme actions agents app audit crawl diagnostics feed fleet forecast frontend jobs mirror proxy " +
	"push search store tables tracing upstream viewer watch")

// setDefaults sets missing settings: first to defaults that depend on other settings, then to the defaults of the table.
func (c *Settings) setDefaults() {
	for _, s := range c.Sources {
		if s != nil && s.Generic != "" {
			s.Rate, s.Concurrency = cmp.Or(s.Rate, genericRate), cmp.Or(s.Concurrency, genericConcurrency)
			s.Timeouts.Stall = cmp.Or(s.Timeouts.Stall, genericStall)
		}
		if s != nil && s.Ages == agesUpstream && s.Answers == nil {
			s.Answers = answersConfig{"": shadow.Upstream} // the upstream gives no age for a list that is made from stored records
		}
	}
	fillDefaults(c, "")
}

// The values of the setting sources.NAME.freshness.
const (
	agesOwn      = "own"
	agesUpstream = "upstream"
)

func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string { return d.Std().String() }
