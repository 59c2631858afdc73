// Restart: which settings hold as soon as they are read again, and which wait.

package config

import (
	"reflect"
	"slices"
	"strings"
)

// live are the settings that hold as soon as they are read again, and all
// below them; NAME stands for any name. Everything else needs a restart.
var live = []string{
	"proxies", "credentials", "roles", "webhooks", "forecasts", "watches", "mail", "search", "viewer.role", "viewer.sign_in", "viewer.users",
	"viewer.header", "viewer.oidc", "viewer.public_url",
	"viewer.export_rows", "viewer.export_time", "viewer.exports", "viewer.exports_each",
	"sources.NAME.secret", "sources.NAME.pool", "sources.NAME.rate", "sources.NAME.concurrency", "sources.NAME.polls", "sources.NAME.answers",
	"sources.NAME.checks",
	"mirror.newest", "mirror.older", "mirror.final", "mirror.other", "mirror.not_found", "mirror.records", "mirror.stale", "mirror.hard",
	"mirror.wait", "mirror.try",
	"limits.waiters", "limits.waiters_each", "limits.flights", "limits.behind", "limits.hints", "limits.queue", "limits.writes",
	"limits.connections", "limits.request_body", "connect.role", "connect.allow", "audit.people", "audit.programs", "audit.roles",
}

// needRestart names the settings that differ from those the server was started
// with and cannot be applied while it serves.
func NeedRestart(started, now *Settings) (names []string) {
	differ(reflect.ValueOf(*started), reflect.ValueOf(*now), "", "", func(name, pattern string) {
		if !isLive(pattern) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names
}

func isLive(pattern string) bool {
	return slices.ContainsFunc(live, func(l string) bool { return pattern == l || strings.HasPrefix(pattern, l+".") })
}

// differ tells the settings in which two values differ, by name and by the
// pattern of it.
func differ(a, b reflect.Value, name, pattern string, tell func(name, pattern string)) {
	under := func(word string) (string, string) {
		return strings.TrimPrefix(name+"."+word, "."), strings.TrimPrefix(pattern+"."+word, ".")
	}
	switch {
	case isLive(pattern):
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		differ(a.Elem(), b.Elem(), name, pattern, tell)
	case a.Kind() == reflect.Struct && !implementsUnmarshal(a.Type()):
		for i := range a.NumField() {
			word, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ",")
			n, p := under(word)
			differ(a.Field(i), b.Field(i), n, p, tell)
		}
	case a.Kind() == reflect.Map && a.Type().Elem().Kind() == reflect.Pointer:
		for _, key := range a.MapKeys() {
			if other := b.MapIndex(key); other.IsValid() {
				n, _ := under(key.String())
				_, p := under("NAME")
				differ(a.MapIndex(key), other, n, p, tell)
			}
		}
	case !reflect.DeepEqual(a.Interface(), b.Interface()):
		tell(name, pattern)
	}
}
