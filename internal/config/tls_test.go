package config

import (
	"path/filepath"
	"testing"

	"understudy/internal/checktest"
)

// Each wrong setting of TLS is refused with a sentence that says what to write.
func TestTLSSettings(t *testing.T) {
	const source = "\nsources: {api: {generic: \"http://127.0.0.1:1\", listen: \"127.0.0.1:0\""
	for text, want := range map[string]string{
		"tls: true":                          "line 1: tls: write self, or {cert: FILE, key: FILE}",
		"tls: off":                           "line 1: tls: write self, or {cert: FILE, key: FILE}",
		"tls: {cert: a.pem}":                 "line 1: tls: write self, or {cert: FILE, key: FILE}",
		"tls: [self]":                        "line 1: tls: write self, or {cert: FILE, key: FILE}",
		"tls: {cert: a.pem, kye: b.pem}":     `unknown setting "kye"`,
		"tls: self" + source + ", tls: no}}": `sources.api.tls: "no" is not known; write off`,
		"tls: self\nnodes: {url: \"http://10.0.0.2:4114\"}": "nodes.url: http://10.0.0.2:4114: the viewer's port serves TLS; write https",
	} {
		_, err := Parse([]byte(text), noEnv)
		checktest.MustTrue(t, err != nil, "%s is accepted", text)
		checktest.Contains(t, err.Error(), want, "%s", text)
	}
	for text, want := range map[string][2]bool{
		"{}": {}, "tls: self" + source + "}}": {true, true}, "tls: self" + source + ", tls: off}}": {true, false},
		"tls: {cert: a.pem, key: b.pem}" + source + "}}": {true, true},
	} {
		c, err := Parse([]byte(text), noEnv)
		checktest.MustNoError(t, err, "%s", text)
		checktest.Equal(t, c.TLS.IsOn(), want[0], "%s: TLS at the viewer", text)
		if s := c.Sources["api"]; s != nil {
			checktest.Equal(t, c.TLS.IsOnFor(s), want[1], "%s: TLS at the source", text)
		}
	}
	c, err := Parse([]byte("tls: {cert: a.pem, key: b.pem}"), noEnv)
	checktest.MustNoError(t, err, "parse")
	folder := t.TempDir()
	_, err = c.TLS.Read(c, folder, "")
	checktest.MustTrue(t, err != nil, "a file that is not there is read")
	checktest.Contains(t, err.Error(), filepath.Join(folder, "a.pem"), "the file is beside the settings")
}
