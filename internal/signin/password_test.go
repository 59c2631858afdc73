package signin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

// theirHash was made by Debian's argon2, the reference implementation:
// echo -n 'four odd words of anna' | argon2 somesaltsomesalt -id -t 2 -k 19456 -p 1 -l 32 -e
const theirHash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$JJhdaFq/VKzB9hbCbHxEGgMRBoU3jedyWQlY9bBN00w"

func TestPasswords(t *testing.T) {
	h := hashOf("four odd words of anna")
	again, err := parseHash(h.String())
	if err != nil || again.String() != h.String() {
		t.Fatalf("%s is read as %s: %v", h, again, err)
	}
	for password, want := range map[string]bool{
		"four odd words of anna": true, "four odd words of ann": false, "Four odd words of anna": false, "": false,
		strings.Repeat("x", maxPassword+1): false,
	} {
		if got, err := again.match(t.Context(), password); err != nil || got != want {
			t.Errorf("%q matches: %v, %v; want %v", password, got, err, want)
		}
	}
	theirs, err := parseHash(theirHash)
	if err != nil {
		t.Fatal(err)
	}
	if right, err := theirs.match(t.Context(), "four odd words of anna"); err != nil || !right {
		t.Errorf("the hash of the reference implementation matches: %v, %v", right, err)
	}
	if other := hashOf("four odd words of anna"); other.String() == h.String() {
		t.Error("two hashes of one password are the same: the salt is not random")
	}
}

func TestPasswordsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ name, password, want string }{
		{"anna", "short", "has 5 characters; take at least 15"},
		{"anna", "", "has 0 characters"},
		{"anna", "fünfzehn äöü!!!", ""},
		{"anna", strings.Repeat("long", 65), "longer than 256 bytes"},
		{"anna", "\xff\xfe is no text, is it", "not UTF-8"},
		{"anna", "ababababababababab", "repeats a few characters"},
		{"anna.of.the.north", "anna.of.the.north1", "little more than the name"},
		{"anna", "four odd words of anna", ""},
	} {
		err := CheckPassword(c.name, c.password)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.password, err, c.want)
		}
		if err != nil && c.password != "" && strings.Contains(err.Error(), c.password) {
			t.Errorf("the error repeats the password %q", c.password)
		}
	}
}

func TestHashesThatAreRefused(t *testing.T) {
	const salt, key = "c29tZXNhbHRzb21lc2FsdA", "JJhdaFq/VKzB9hbCbHxEGgMRBoU3jedyWQlY9bBN00w"
	for _, c := range []struct{ from, to, want string }{
		{"argon2id", "argon2i", "not an argon2id hash"},
		{"v=19", "v=16", "only v=19 is supported"},
		{"m=19456", "m=1024", "m*t must be at least"},
		{"m=19456", "m=4194304", "m at most"},
		{"t=2", "t=99", "t at most"},
		{"p=1", "p=0", "p at least 1"},
		{"p=1", "p=01", "write m=N"},
		{"p=1", "p=1,x=2", "write m=N"},
		{salt, "c2hvcnQ", "8 to 64 bytes"},
		{salt, "!" + salt[1:], "not base64"},
		{key, "c2hvcnQ", "16 to 64 bytes"},
		{"$" + key, "", "not an argon2id hash"},
	} {
		_, err := parseHash(strings.Replace(theirHash, c.from, c.to, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in place of %s: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

// Only so many hashes are computed at once; who waits longer than the request lasts is refused.
func TestHashesAtOnce(t *testing.T) {
	for range maxHashes {
		hashSlots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := dummyHash.match(ctx, "x")
	for range maxHashes {
		<-hashSlots
	}
	if !errors.Is(err, understudy.ErrTooMany) {
		t.Errorf("beyond the bound: %v", err)
	}
}

// A hash that is read is written as it was, and is never cheaper than ours or dearer than the bounds.
func FuzzHash(f *testing.F) {
	f.Add(dummyHash.String())
	f.Add(theirHash)
	f.Add("$argon2id$v=19$m=+19456,t=2,p=1$$")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHash(text)
		if err != nil {
			return
		}
		if h.String() != text {
			t.Fatalf("%q is read as %q", text, h)
		}
		checktest.MustTrue(t, h.memory <= maxMemory, "h.memory is %v; text %q", h.memory, text)
		checktest.MustTrue(t, h.passes <= maxPasses, "h.passes is %v; text %q", h.passes, text)
		checktest.MustTrue(t, uint64(h.memory)*uint64(h.passes) >= hashMemory*hashPasses,
			"uint64(h.memory)*uint64(h.passes) is %v; text %q", uint64(h.memory)*uint64(h.passes), text)
	})
}
