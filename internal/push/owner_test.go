// Receivers of people who no longer have access.

package push

import (
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// staff are the people who have access, by name, with their roles.
type staff map[string]string

func (s staff) Owner(c understudy.Caller) understudy.Owner {
	return understudy.Owner{Name: c.Name, Source: c.Source, Role: c.Role(), LastSeen: epoch.Add(2 * time.Hour)}
}

func (s staff) Resolve(o understudy.Owner) (understudy.Caller, bool) {
	return understudy.Caller{Name: o.Name, Source: o.Source, Grant: &understudy.Grant{Role: s[o.Name]}}, s[o.Name] != ""
}

func TestReceiversOfRemovedPersonAreDeleted(t *testing.T) {
	f, people, now := newApple(t), staff{"ann": "support", "bob": "all"}, epoch
	b := openBook(t, func() time.Time { return now }, func(p *Policy) { p.APNs, p.Owners = f.client(), people })
	for _, of := range []understudy.Owner{ann, bob} {
		checktest.MustNoError(t, b.Add(t.Context(), of, Receiver{Device: device}), "add")
	}
	checktest.NoError(t, b.kv.SetValue(t.Context(), receiverPrefix+"x/y", []byte("{")), "store a value that cannot be read")
	checktest.NoError(t, b.CheckOwners(t.Context()), "check")
	checktest.Equal(t, len(listed(t, b, ann)), 1, "receivers of a person with access")
	delete(people, "ann")
	checktest.NoError(t, b.CheckOwners(t.Context()), "check")
	checktest.Equal(t, len(listed(t, b, ann)), 0, "receivers of a removed person")
	checktest.Equal(t, len(listed(t, b, bob)), 1, "receivers of another person")
	people["ann"] = "support"
	checktest.Equal(t, len(listed(t, b, ann)), 0, "receivers of a person who has access again")
	left, err := b.kv.ReadValues(t.Context(), receiverPrefix)
	checktest.NoError(t, err, "read")
	checktest.Equal(t, len(left), 1, "stored receivers")
}

func TestLastRequestOfOwnerIsStored(t *testing.T) {
	f, people, now := newApple(t), staff{"ann": "support"}, epoch
	db := storetest.Open(t, store.Options{})
	reopen := func() *Book {
		b, err := Open(t.Context(), db.KV, func() time.Time { return now })
		checktest.MustNoError(t, err, "open")
		b.SetPolicy(Policy{APNs: f.client(), Owners: people})
		return b
	}
	b := reopen()
	checktest.MustNoError(t, b.Add(t.Context(), ann, Receiver{Device: device}), "add")
	request := func(role, by string) {
		b.NoteOwner(understudy.Caller{Name: "ann", Grant: &understudy.Grant{Role: role, IssuedBy: by}})
		b.NoteOwner(understudy.Caller{Name: "stranger", Grant: &understudy.Grant{Role: role}})
		checktest.NoError(t, b.CheckOwners(t.Context()), "check")
	}
	request("narrow", understudy.IssuedByViewAs)
	checktest.Equal(t, listed(t, b, ann)[0].Owner.Role, "support", "the role while viewing as another role")
	request("narrow", "config")
	for range 2 { // before and after a restart
		owner := listed(t, b, ann)[0].Owner
		checktest.Equal(t, owner.Role, "narrow", "the role of the last request")
		checktest.Equal(t, owner.LastSeen.Sub(epoch), 2*time.Hour, "the time of the last request")
		b = reopen()
		checktest.NoError(t, b.CheckOwners(t.Context()), "check")
	}
}
