// Secrets: they leave by Reveal and by no other way.

package understudy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretDoesNotLeak(t *testing.T) {
	const text = "p4ssw0rd"
	s := NewSecret(text)
	holder := struct {
		Name   string
		Secret Secret
		In     []Secret
		inside Secret
	}{"x", s, []Secret{s}, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%10s"} {
		fmt.Fprintf(&out, verb+" ", s)
		fmt.Fprintf(&out, verb+" ", &s)
		fmt.Fprintf(&out, verb+" ", holder)
		fmt.Fprintf(&out, verb+" ", &holder)
	}
	b, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "secret", s, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "secret", s, "holder", holder)
	fmt.Fprint(&out, s, s.String(), s.GoString(), fmt.Errorf("with %v: %w", s, ErrInvalid))
	for _, leak := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text)} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%s is in %s", leak, &out)
		}
	}
	if strings.Count(out.String(), "[redacted]") < 40 {
		t.Errorf("little was redacted: %s", &out)
	}
	if s.Reveal() != text || s.IsEmpty() || !(Secret{}).IsEmpty() {
		t.Error("reveal")
	}
}

func TestSecretIs(t *testing.T) {
	s := NewSecret("abc")
	if !s.Equal("abc") || s.Equal("abd") || s.Equal("ab") || s.Equal("") || !(Secret{}).Equal("") || (Secret{}).Equal("a") {
		t.Error("comparison")
	}
}
