package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/wal"
)

// written is a folder with a chain of entries and checkpoints, and its lines.
func written(t *testing.T) (*folder, [][]byte) {
	f := newFolder(t)
	l := f.log()
	for range 5 {
		list(t, l, record("CA1"), record("CA2", "+14155550100"), record("CA3"))
		l.writeCountsAndSign(t.Context())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f.sound()
	return f, f.lines()
}

func (f *folder) lines() (all [][]byte) {
	f.t.Helper()
	for e, err := range f.reader().Lines(f.chain(), 0) {
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, bytes.Clone(e.Data))
	}
	return all
}

func (f *folder) chain() string {
	ids, err := ListChains(f.options().Dir)
	if err != nil || len(ids) != 1 {
		f.t.Fatal(ids, err)
	}
	return ids[0]
}

// write makes the chain anew of these lines, with right lengths and checksums.
func (f *folder) write(lines [][]byte) {
	f.t.Helper()
	dir := filepath.Join(f.options().Dir, f.chain())
	err := os.RemoveAll(dir)
	w, bad := wal.Open(dir, wal.Options{SegmentSize: 4 << 10})
	if err = errors.Join(err, bad); err != nil {
		f.t.Fatal(err)
	}
	for _, line := range lines {
		if _, err := w.Append(f.t.Context(), line); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// linked gives lines right numbers and hashes, as who rewrites a chain would.
func linked(t *testing.T, lines [][]byte) (all [][]byte) {
	head := [sha256.Size]byte{}
	for i, line := range lines {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		body, err := encodeLine(Entry{At: e.At, Caller: e.Caller, Role: e.Role, Action: e.Action, Source: e.Source, Kind: e.Kind, IDs: e.IDs,
			Rows: e.Rows, Values: e.Values, Request: e.Request, Begin: e.Begin, Checkpoint: e.Checkpoint})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, placeLine(e.Chain, uint64(i+1), head, body))
		head = sha256.Sum256(all[i])
	}
	return all
}

// Verify finds what was done to a chain by somebody who can write to its folder.
func TestVerify(t *testing.T) {
	stranger := newFolder(t).key
	for _, c := range []struct {
		name, want string
		do         func(f *folder, lines [][]byte) [][]byte
	}{
		{"as it was", "", func(_ *folder, lines [][]byte) [][]byte { return lines }},
		{"a cut tail", "cannot be read: they are", func(_ *folder, lines [][]byte) [][]byte { return lines[:len(lines)-4] }},
		{"a tail cut at a checkpoint", "cannot be read: they are", func(_ *folder, lines [][]byte) [][]byte { return lines[:len(lines)-5] }},
		{"all but the beginning", "cannot be read: they are", func(_ *folder, lines [][]byte) [][]byte { return lines[:1] }},
		{"a changed entry", "entry 4 was changed", func(_ *folder, lines [][]byte) [][]byte {
			lines[3] = bytes.Replace(lines[3], []byte("CA2"), []byte("CA9"), 1)
			return lines
		}},
		{"an entry left out", "is followed by", func(_ *folder, lines [][]byte) [][]byte { return append(lines[:3], lines[4:]...) }},
		{"a chain written anew, with its checkpoints", "does not match the entries before it", func(f *folder, lines [][]byte) [][]byte {
			lines[3] = bytes.Replace(lines[3], []byte("CA2"), []byte("CA9"), 1)
			return linked(f.t, lines)
		}},
		{"a chain written anew, without checkpoints", "the chain was rewritten", func(f *folder, lines [][]byte) [][]byte {
			lines[3] = bytes.Replace(lines[3], []byte("CA2"), []byte("CA9"), 1)
			var bare [][]byte
			for _, line := range lines {
				if !bytes.Contains(line, []byte(`"checkpoint"`)) {
					bare = append(bare, line)
				}
			}
			return linked(f.t, append(bare, bare[1:]...))
		}},
		{"a chain written anew, signed by a stranger", "is signed with another key", func(f *folder, lines [][]byte) [][]byte {
			lines = linked(f.t, lines[:2])
			var e Entry
			if err := json.Unmarshal(lines[1], &e); err != nil {
				f.t.Fatal(err)
			}
			head := sha256.Sum256(lines[0])
			forged := Checkpoint{Chain: e.Chain, Count: 1, Head: hex.EncodeToString(head[:]), At: e.At}
			stranger.sign(&forged)
			body, _ := encodeLine(Entry{At: e.At, Checkpoint: &forged})
			return [][]byte{lines[0], placeLine(e.Chain, 2, head, body)}
		}},
		{"a checkpoint with a wrong signature", "has a wrong signature", func(_ *folder, lines [][]byte) [][]byte {
			last := len(lines) - 1
			at := bytes.Index(lines[last], []byte(`"sig":"`)) + len(`"sig":"`)
			lines[last] = append(append(bytes.Clone(lines[last][:at]), "AAAA"...), lines[last][at+4:]...)
			return lines
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, lines := written(t)
			first := f.chain()
			f.write(c.do(f, lines))
			faults := strings.Join(f.verify()[0].Faults, "\n")
			if c.want == "" && faults != "" || !strings.Contains(faults, c.want) {
				t.Fatalf("%q, want %q", faults, c.want)
			}
			// The next writer leaves such a chain as it is, unless it cannot know.
			list(t, f.log(), record("CA7"))
			for _, r := range f.verify() {
				if c.want != "" && r.Chain == first && len(r.Faults) == 0 {
					t.Errorf("nothing is wrong any more once the log was written to")
				}
			}
		})
	}
}

// A chain that is gone as a whole is missed, and so is one whose end went with the file of
// checkpoints, by who was sent a checkpoint.
func TestVerifyReportsHowManyBytesItHasRead(t *testing.T) {
	f, lines := written(t)
	total, read := f.reader().SumSizes([]string{f.chain(), "missing"}), int64(0)
	v := Verifier{Keys: []string{f.key.PublicKey()}, OnBytes: func(n int64) { read += n }}
	if _, err := v.Verify(f.options().Dir, f.options().Heads); err != nil {
		t.Fatal(err)
	}
	if empty := total - read; read == 0 || empty < 0 || empty >= f.options().SegmentSize {
		t.Errorf("the files have %d bytes, and %d were reported", total, read)
	}
	text := append(bytes.Join(lines, []byte("\n")), '\n')
	read = 0
	if _, err := v.VerifyLines(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if read != int64(len(text)) {
		t.Errorf("the exported lines have %d bytes, and %d were reported", len(text), read)
	}
}

func TestVerifyByCheckpointsElsewhere(t *testing.T) {
	f, lines := written(t)
	var e Entry
	if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil || e.Checkpoint == nil {
		t.Fatal(err, e)
	}
	if err := os.RemoveAll(f.options().Dir); err != nil {
		t.Fatal(err)
	}
	if all := f.verify(); len(all) != 1 || len(all[0].Faults) == 0 {
		t.Errorf("a chain that is gone: %+v", all)
	}
	f, lines = written(t)
	if err := json.Unmarshal(lines[len(lines)-1], &e); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.options().Heads); err != nil {
		t.Fatal(err)
	}
	f.write(lines[:6])
	if all := f.verify(); len(all[0].Faults) != 1 || !strings.Contains(all[0].Faults[0], "has no checkpoint of this chain") {
		t.Errorf("without the file of checkpoints: %+v", all)
	}
	if all := f.verify(*e.Checkpoint); len(all[0].Faults) != 1 || !strings.Contains(all[0].Faults[0], "cannot be read") {
		t.Errorf("%+v", all)
	}
	f.write(lines)
	if all := f.verify(*e.Checkpoint); len(all[0].Faults) != 0 {
		t.Errorf("whole, with a checkpoint from elsewhere: %+v", all)
	}
}

// Bytes that are wrong on the disk are a fault, also where their checksums say so first.
func TestVerifyADamagedFile(t *testing.T) {
	f, _ := written(t)
	dir := filepath.Join(f.options().Dir, f.chain())
	files, err := wal.ListFiles(dir)
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{paths[0], paths[len(paths)-1]} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[200] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := f.verify()[0]; len(r.Faults) == 0 {
			t.Errorf("%s: no fault", path)
		}
		data[200] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.sound()
}

// An entry that was changed behind the newest checkpoint is told, and the entries behind it: the next
// writer begins another chain, says so, and leaves the file as it is.
func TestEntryChangedBehindTheLastCheckpointIsToldAndNothingIsCut(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	list(t, l, record("CA1"), record("CA2"), record("CA3"), record("CA4"))
	damaged := f.chain()
	path := filepath.Join(f.options().Dir, damaged, "00000000000000000001.wal")
	data, err := os.ReadFile(path)
	heads, bad := os.ReadFile(f.options().Heads)
	if err = errors.Join(err, bad, l.Close()); err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte(`"CA3"`))+1] ^= 1 // entry 5: the chain begins with two of its own
	if err := errors.Join(os.WriteFile(path, data, 0o600), os.WriteFile(f.options().Heads, heads, 0o600)); err != nil {
		t.Fatal(err)
	}
	told := func() string { return strings.Join(f.verify()[0].Faults, "\n") }
	const want = "entry 5 in "
	if got := told(); !strings.Contains(got, want) || !strings.Contains(got, "1 from entry 6 on) cannot be connected") {
		t.Errorf("%q", got)
	}
	var log bytes.Buffer
	elsewhere := newElsewhere(t)
	next, end := f.sending(SendOptions{URL: elsewhere.URL, KV: notes(t).KV}, slog.New(slog.NewTextHandler(&log, nil)))
	list(t, next, record("CA5"))
	until(t, next, allSent)
	if got := next.Stats().Damaged; got != damaged {
		t.Errorf("stats name %q as damaged, want %q", got, damaged)
	}
	end()
	if sent := bytes.Join(elsewhere.lines(), nil); !bytes.Contains(sent, []byte("CA2")) || !bytes.Contains(sent, []byte("CA5")) {
		t.Errorf("sent were %s", sent)
	}
	if !strings.Contains(log.String(), "a chain is damaged") || !strings.Contains(log.String(), want) {
		t.Errorf("the log says %q", log.String())
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the damaged file was changed: %v", err)
	}
	if got := told(); !strings.Contains(got, want) {
		t.Errorf("once another chain is written: %q", got)
	}
	if got := f.find(Filter{}); len(got) != 3 {
		t.Errorf("%d entries are found before the damage and in the new chain, want 3", len(got))
	}
}

// Lines that were sent elsewhere are verified there, also when some came twice.
func TestVerifyLines(t *testing.T) {
	f, lines := written(t)
	v := Verifier{Keys: []string{f.key.PublicKey()}}
	all := bytes.Join(append(lines[:9:9], lines[4:]...), []byte("\n"))
	got, err := v.VerifyLines(bytes.NewReader(all))
	checktest.MustNoError(t, err, "got %+v", got)
	checktest.MustEqual(t, len(got), 1, "len(got)")
	checktest.MustTrue(t, len(got[0].Faults) <= 0, "len(got[0].Faults) is %v, want <= 0", len(got[0].Faults))
	checktest.Equal(t, got[0].Last, uint64(len(lines)), "got[0].Last")
	for name, text := range map[string]string{
		"one left out": string(bytes.Join(append(lines[:9:9], lines[10:]...), []byte("\n"))),
		"no line":      "hello\n",
	} {
		{
			got, err := v.VerifyLines(strings.NewReader(text))
			checktest.MustNoError(t, err, "%s; got %+v", name, got)
			checktest.MustEqual(t, len(got), 1, "%s: len(got)", name)
			checktest.True(t, len(got[0].Faults) != 0, "%s: len(got[0].Faults) is 0", name)
		}
	}
}

func FuzzVerifyLines(f *testing.F) {
	f.Add([]byte(`{"chain":"a","n":1,"prev":"0000000000000000000000000000000000000000000000000000000000000000","checkpoint":{"count":0}}`))
	f.Add([]byte("{\"chain\":\"a\",\"n\":2,\"cut\":{\"chain\":\"a\",\"before\":3}}\n{\"chain\":\"a\",\"n\":2}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Verifier{}.VerifyLines(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, r := range all {
			if r.Signed > 0 {
				t.Errorf("%+v is signed by a key that nobody named", r)
			}
		}
	})
}

func FuzzHashes(f *testing.F) {
	f.Add(`from:"+1 (415) 555-0100" and`)
	f.Add(`"`)
	key, err := ReadKey(filepath.Join(f.TempDir(), "key"), true)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := key.Hashes([]string{text, text})
		seen := map[string]bool{}
		for _, h := range all {
			if len(h) != 2*hashBytes || seen[h] {
				t.Fatalf("%q: %v", text, all)
			}
			seen[h] = true
		}
		if understudy.ParsePhone(text).Digits != "" && !seen[key.Hash(text)] {
			t.Errorf("%q is not found by itself: %v", text, all)
		}
	})
}

// Damaged checkpoints are an error of one sentence, for who verifies and for who writes on; none of
// them passes for a sound log.
func TestDamagedCheckpointsAreRefused(t *testing.T) {
	f := newFolder(t)
	l := f.log()
	list(t, l, record("CA1"), record("CA2"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o := f.options()
	sound, err := os.ReadFile(o.Heads)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := ListChains(o.Dir)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	for name, text := range map[string]string{
		"null": `null`, "an entry that is null": `{"x":null}`, "an empty entry": `{"` + ids[0] + `":{}}`,
		"no JSON": `{`, "a list": `[]`, "nothing": ``,
		"another chain's": strings.Replace(string(sound), ids[0], "20200101T000000Z-00000000", 1),
		"another count":   strings.Replace(string(sound), `"count": `, `"count": 1`, 1),
	} {
		if text == string(sound) {
			t.Fatalf("%s: nothing is changed in %s", name, sound)
		}
		if err := os.WriteFile(o.Heads, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Verifier{Keys: []string{f.key.PublicKey()}}.Verify(o.Dir, o.Heads)
		if err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: %+v %v", name, all, err)
		}
		again := New(o)
		if err := again.RecordAction(t.Context(), record("CA3")); err == nil {
			t.Errorf("%s: an entry is written behind it", name)
		}
		if err := again.Close(); err != nil && !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(o.Heads, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	f.sound()
}

// Every thousand entries and every minute there is a checkpoint.
func TestCheckpoints(t *testing.T) {
	f := newFolder(t)
	o := f.options()
	o.SegmentSize = 0
	l := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	for l.Stats().SignedAt == nil {
		list(t, l, record("CA1"))
	}
	first := *l.Stats().SignedAt
	for range entriesPerCheckpoint + 10 {
		list(t, l, record("CA1"))
	}
	for l.Stats().SignedAt.Equal(first) {
		list(t, l, record("CA1"))
	}
	cancel()
	if err := errors.Join(<-ended, l.Close()); err != nil {
		t.Fatal(err)
	}
	s := f.verify()
	checktest.MustEqual(t, len(s), 1, "len(s)")
	checktest.Equal(t, s[0].Signed+1, s[0].Last, "s[0].Signed+1")
	checktest.True(t, len(s[0].Faults) <= 0, "len(s[0].Faults) is %v, want <= 0", len(s[0].Faults))
}
