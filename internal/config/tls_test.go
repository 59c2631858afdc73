package config

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
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
		source + ", clients: {address: [10.0.0.1/32]}}}":    `unknown setting "address"`,
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

// The clients of a port come from its settings and from a file beside them. A wrong file is an error that names the setting and the file.
func TestClientsOfAPort(t *testing.T) {
	folder := t.TempDir()
	api := httptest.NewTLSServer(nil)
	api.Close()
	right := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string][]byte{"right.pem": right, "empty.pem": nil, "text.pem": []byte("no certificate")} {
		checktest.MustNoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600), "write")
	}
	const open = "proxies: [192.0.2.1/32]\nsources: {open: {generic: \"http://127.0.0.1:1\", listen: \"127.0.0.1:0\"}, " +
		"api: {generic: \"http://127.0.0.1:1\", listen: \"127.0.0.1:0\", clients: "
	for text, want := range map[string]string{
		"tls: self\n" + open + "{ca: right.pem, addresses: [10.1.2.3/8]}}}": "",
		"tls: self\n" + open + "{ca: empty.pem}}}":                          filepath.Join(folder, "empty.pem") + " contains no certificate",
		"tls: self\n" + open + "{ca: text.pem}}}":                           "contains no certificate",
		"tls: self\n" + open + "{ca: none.pem}}}":                           "none.pem: no such file",
		"tls: self\n" + open + "{ca: right.pem}, tls: off}}":                "sources.api.clients: the port has no TLS",
		open + "{ca: right.pem}}}":                                          "sources.api.clients: the port has no TLS",
		open + "{addresses: [10.0.0.1]}}}":                                  `sources.api.clients: "10.0.0.1" is not an address block`,
	} {
		c, err := Parse([]byte(text), noEnv)
		checktest.MustNoError(t, err, "%s", text)
		_, err = c.ReadSources(folder)
		if want != "" {
			checktest.MustTrue(t, err != nil, "%s is accepted", text)
			checktest.Contains(t, err.Error(), want, "%s", text)
			continue
		}
		checktest.MustNoError(t, err, "%s", text)
		limited, free := c.Sources["api"].Clients, c.Sources["open"].Clients
		checktest.True(t, limited.Authorities != nil && free.Authorities == nil, "the authorities are %v and %v", limited, free)
		checktest.Equal(t, fmt.Sprint(limited.From, limited.Proxies), "[10.0.0.0/8] [192.0.2.1/32]", "addresses")
		checktest.Equal(t, len(free.From), 0, "addresses of a port without the setting")
	}
}
