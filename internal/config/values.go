// This file parses durations, sizes, dates and levels in the notation of the settings file.

package config

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"understudy"
	"understudy/internal/signin"
	"understudy/kit/logline"
)

type (
	Duration  time.Duration  // a duration, written as 30s, 5m or 30d
	logLevel  slog.Level     // a log level, written as debug, info, warn or error
	logFormat logline.Format // the format of log lines, written as logfmt, json or terminal
	size      int64          // a number of bytes, written as 64MiB, 10GiB or 1000
	date      time.Time      // a time, written as 2027-01-01 or in the form of RFC 3339
)

// UnmarshalYAML reads a duration that is not negative.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := understudy.ParseDuration(n.Value)
	if err == nil && v < 0 {
		err = fmt.Errorf("%q is not a duration above zero; write 30s, 5m or 30d", n.Value)
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = Duration(v)
	return nil
}

// UnmarshalYAML reads the name of a log level.
func (l *logLevel) UnmarshalYAML(n *yaml.Node) error {
	if (*slog.Level)(l).UnmarshalText([]byte(n.Value)) != nil {
		return fmt.Errorf("line %d: %q is not a level; write debug, info, warn or error", n.Line, understudy.Clip(n.Value))
	}
	return nil
}

// Std returns the level as a slog.Level.
func (l logLevel) Std() slog.Level { return slog.Level(l) }

// String returns the level as people write it.
func (l logLevel) String() string { return strings.ToLower(l.Std().String()) }

// UnmarshalYAML reads the name of a format. text is the former name of logfmt.
func (f *logFormat) UnmarshalYAML(n *yaml.Node) error {
	formats := map[string]logline.Format{"logfmt": logline.Logfmt, "text": logline.Logfmt, "json": logline.JSON, "terminal": logline.Terminal}
	format, ok := formats[n.Value]
	if !ok {
		return fmt.Errorf("line %d: %q is not a format; write logfmt, json or terminal", n.Line, understudy.Clip(n.Value))
	}
	*f = logFormat(format)
	return nil
}

// Std returns the format as a logline.Format.
func (f logFormat) Std() logline.Format { return logline.Format(f) }

// String returns the format as people write it.
func (f logFormat) String() string { return [...]string{"logfmt", "json", "terminal"}[f] }

// UnmarshalYAML reads a number of bytes with an optional binary or decimal unit.
func (s *size) UnmarshalYAML(n *yaml.Node) error {
	v, err := parseSize(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*s = size(v)
	return nil
}

// parseSize parses a number of bytes with an optional unit.
func parseSize(text string) (int64, error) {
	units := []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
		{"B", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"", 1}}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || v < 0 || v > (1<<62)/u.bytes {
			break
		}
		return v * u.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size; write 64MiB or 10GiB", text)
}

// rules is a mapping of names to roles, in the order of the file.
type rules []signin.Rule

// UnmarshalYAML reads a mapping of names to roles.
func (r *rules) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: write NAME: ROLE", n.Line)
	}
	return visitPairs(n, func(k, v *yaml.Node) error {
		if k.Value == "" || v.Kind != yaml.ScalarNode || v.Value == "" {
			return fmt.Errorf("line %d: write NAME: ROLE", v.Line)
		}
		*r = append(*r, signin.Rule{Of: k.Value, Role: v.Value})
		return nil
	})
}

// UnmarshalYAML reads a day, which means its first moment in UTC, or an RFC 3339 time.
func (d *date) UnmarshalYAML(n *yaml.Node) error {
	t, err := understudy.ParseTime(n.Value, time.UTC, time.DateOnly, time.RFC3339)
	if err != nil {
		return fmt.Errorf("line %d: %q is not a date; write 2027-01-01", n.Line, n.Value)
	}
	*d = date(t)
	return nil
}

// expand replaces ${NAME} by the environment variable in every scalar that is not a secret. A missing variable is an error.
func expand(n *yaml.Node, key string, lookup func(string) (string, bool)) error {
	if n.Kind == yaml.ScalarNode && key != "secret" {
		var missing string
		out := os.Expand(guardDollars(n.Value), func(name string) string {
			if name == literalDollar {
				return "$"
			}
			v, ok := lookup(name)
			if !ok && missing == "" {
				missing = name
			}
			return v
		})
		if missing != "" {
			return fmt.Errorf("line %d: environment variable %s is not set", n.Line, missing)
		}
		n.Value = out
		return nil
	}
	for i, child := range n.Content {
		name := key
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			name = n.Content[i-1].Value
		}
		if err := expand(child, name, lookup); err != nil {
			return err
		}
	}
	return nil
}

// literalDollar stands for a dollar sign that does not begin a ${NAME}.
const literalDollar = "\x00dollar"

func guardDollars(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] == '$' && (i+1 == len(s) || s[i+1] != '{') {
			b.WriteString("${" + literalDollar + "}")
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// resolvePath returns the path of a file that the settings name. A relative path is relative to folder.
func resolvePath(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
