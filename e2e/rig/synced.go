// Complete kinds: all records of a kind are held.

package rig

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/upstream"
)

// Incomplete returns a kind of the demo's source that is not complete, or was not swept since a time, and why; "" if
// all are. It asks with the demo's credential.
func Incomplete(t testing.TB, viewer string, since time.Time, kinds ...string) string {
	t.Helper()
	return incomplete(t, Account+":"+DemoToken, viewer, "twilio", since, kinds)
}

// IncompleteAs returns what Incomplete does. It asks with a credential, or with "" as a person on this machine.
func IncompleteAs(t testing.TB, user, viewer string, since time.Time, kinds ...string) string {
	t.Helper()
	return incomplete(t, user, viewer, "twilio", since, kinds)
}

func incomplete(t testing.TB, user, viewer, source string, since time.Time, kinds []string) string {
	t.Helper()
	var stats struct {
		Sources map[string]struct {
			Kinds map[string]struct {
				Complete bool
				Why      string
				Swept    time.Time
			}
		}
	}
	if err := json.Unmarshal(Get(t, user, viewer+"/-/stats").Body, &stats); err != nil {
		t.Fatal(err)
	}
	for _, name := range kinds {
		if k := stats.Sources[source].Kinds[name]; !k.Complete || k.Swept.Before(since) {
			return fmt.Sprintf("%s: complete %v (%s), swept %v", name, k.Complete, k.Why, k.Swept)
		}
	}
	return ""
}

// SyncSetting returns the setting by which a source mirrors every kind of KindsWithIDs.
func SyncSetting(t testing.TB) string {
	t.Helper()
	return "sync: [" + strings.Join(KindsWithIDs(t), ", ") + "]"
}

// KindsWithIDs returns the kinds of Twilio whose records have an id.
func KindsWithIDs(t testing.TB) (names []string) {
	t.Helper()
	spec, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range spec.Kinds {
		if len(k.ID) > 0 {
			names = append(names, k.Name)
		}
	}
	return names
}

// AwaitMirrored waits until every kind of KindsWithIDs is complete.
func AwaitMirrored(t testing.TB, viewer string) {
	t.Helper()
	names := KindsWithIDs(t)
	Await(t, func() string { return Incomplete(t, viewer, time.Time{}, names...) })
}

// AwaitSwept waits until kinds of a source are complete and were swept after a time.
func AwaitSwept(t testing.TB, viewer, source string, kinds []string, since time.Time) {
	t.Helper()
	Await(t, func() string { return incomplete(t, "", viewer, source, since, kinds) })
}

// KindName returns the name that the spec of Twilio has for a kind that paths call Messages, Calls or
// IncomingPhoneNumbers.
func KindName(path string) string {
	return strings.ToLower(strings.Replace(path, "IncomingPhoneN", "Incoming_Phone_N", 1))
}
