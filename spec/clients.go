// Clients: the lines that point one at a drop-in port.

package spec

import (
	"fmt"
	"strings"
)

// mostSnippets bounds the snippets of a spec.
const mostSnippets = 16

// Snippet is a program, or a command, that reads some records through a drop-in port.
// Connection.Fill says what it is filled with.
type Snippet struct {
	Title    string `yaml:"title"`    // the client: "Python"
	Language string `yaml:"language"` // of the code, as Markdown names it
	Code     string `yaml:"code"`
}

// Connection is what a client needs to know of a drop-in port.
type Connection struct {
	Address string // the port's origin: http://127.0.0.1:4115
	User    string // of the credential
	Secret  string
	Account string // the source's own user, which paths may name
}

// Fill puts the connection into a snippet: {address}, its {scheme} and {host}, {user},
// {secret} and {account}.
func (c Connection) Fill(s Snippet) string {
	scheme, host, _ := strings.Cut(c.Address, "://")
	return strings.NewReplacer("{address}", c.Address, "{scheme}", scheme, "{host}", host, "{user}", c.User, "{secret}", c.Secret,
		"{account}", c.Account).Replace(s.Code)
}

// checkSnippets makes sure that each snippet leads to the port and gives a credential.
func checkSnippets(all []Snippet) error {
	if len(all) > mostSnippets {
		return fmt.Errorf("connect: %d entries, want at most %d", len(all), mostSnippets)
	}
	seen := map[string]bool{}
	for i, s := range all {
		leads := strings.Contains(s.Code, "{address}") || strings.Contains(s.Code, "{host}")
		switch {
		case s.Title == "" || s.Language == "" || s.Code == "":
			return fmt.Errorf("connect[%d]: want title, language and code", i)
		case seen[s.Title]:
			return fmt.Errorf("connect[%d]: %s is there twice", i, s.Title)
		case !leads || !strings.Contains(s.Code, "{secret}"):
			return fmt.Errorf("connect[%d]: %s: the code wants {address} or {host}, and {secret}", i, s.Title)
		}
		seen[s.Title] = true
	}
	return nil
}
