// This file reads the secrets to which settings point.

package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy"
	"understudy/internal/smallfile"
	"understudy/internal/store"
	"understudy/kit/charset"
	"understudy/kit/lockwatch"
)

// secretTimeout is the maximum run time of a command that prints a secret.
const secretTimeout = 10 * time.Second

// maxSecret is the maximum size of a secret in bytes.
const maxSecret = 64 << 10

// ReadSecret reads the secret to which a setting points: a file or the output of a command, in UTF-8, or in
// UTF-16 with a byte order mark. It removes one trailing line end. Characters that no header field can contain
// are an error, except in PEM. An error never contains the secret.
func ReadSecret(ctx context.Context, ref SecretRef, folder string) (understudy.Secret, error) {
	scheme, rest, _ := strings.Cut(string(ref), ":")
	var text []byte
	switch scheme {
	case "file":
		var err error
		if text, err = smallfile.Read(resolvePath(folder, rest), maxSecret); err != nil {
			return understudy.Secret{}, err
		}
	case "cmd":
		if strings.TrimSpace(rest) == "" {
			return understudy.Secret{}, errors.New("a secret is written file:PATH or cmd:COMMAND, and cmd: names no command")
		}
		ctx, cancel := context.WithTimeoutCause(ctx, secretTimeout, fmt.Errorf("it has not ended within %v", secretTimeout))
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", rest)
		cmd.Dir, cmd.WaitDelay = folder, time.Second
		reap := ownGroup(cmd)
		out, err := cmd.Output()
		reap()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			// The error contains neither the command nor its output, because both may contain the secret.
			return understudy.Secret{}, fmt.Errorf("the command that prints the secret failed: %w; run it by hand, in the folder of the "+
				"settings and as the user of this process", err)
		}
		text = out
	default:
		return understudy.Secret{}, fmt.Errorf("a secret is written file:PATH or cmd:COMMAND, never in the settings file itself")
	}
	if c, known := charset.Guess("", text); known {
		whole := false
		if text, whole = c.Decode(text); !whole {
			return understudy.Secret{}, errors.New("the secret begins as UTF-16 and is cut or damaged; save it as UTF-8 text")
		}
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	isPEM := bytes.Contains(text, []byte("-----BEGIN ")) // comments may precede a certificate in PEM
	control := bytes.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && (!isPEM || r != '\n' && r != '\r') })
	hidden := bytes.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' && !isPEM })
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return understudy.Secret{}, errors.New("the secret is empty or blank")
	case len(text) > maxSecret:
		return understudy.Secret{}, fmt.Errorf("the secret has more than %d bytes", maxSecret)
	case !utf8.Valid(text):
		return understudy.Secret{}, errors.New("the secret is not in UTF-8; save it as UTF-8 text")
	case control >= 0:
		return understudy.Secret{}, fmt.Errorf("the secret has a line end or another control character at byte %d, which no request "+
			"can carry; write it in one line", control)
	case hidden >= 0:
		return understudy.Secret{}, fmt.Errorf("the secret has an invisible character at byte %d, such as a second byte order mark; "+
			"write it again", hidden)
	}
	return understudy.NewSecret(string(text)), nil
}

// WarnOfBlanks returns a reader that calls warn for each secret that begins or ends with a blank. The blank is part
// of the secret and easily overlooked. The warning contains the names of settings, but no command.
func WarnOfBlanks(read Secrets, c *Settings, warn func(string)) Secrets {
	return func(ctx context.Context, ref SecretRef) (understudy.Secret, error) {
		secret, err := read(ctx, ref)
		if text := secret.Reveal(); err == nil && strings.TrimSpace(text) != text {
			for _, one := range NamedSecrets(c) {
				if one.Ref == ref {
					warn(one.Name + ": the secret begins or ends with a blank, which belongs to it")
				}
			}
		}
		return secret, err
	}
}

// SecretRef says where a secret is stored: file:PATH or cmd:COMMAND. Every setting that names a secret has this
// type, so that NamedSecrets finds it.
type SecretRef string

// Secrets reads the secret to which a setting points.
type Secrets func(ctx context.Context, ref SecretRef) (understudy.Secret, error)

// FileSecrets returns a reader of secrets relative to the folder of the settings file.
func FileSecrets(folder string) Secrets {
	return func(ctx context.Context, ref SecretRef) (understudy.Secret, error) {
		return ReadSecret(ctx, ref, folder)
	}
}

// NamedSecret is a setting that names a secret.
type NamedSecret struct {
	Name string // the path of the setting, such as sources.api.pool[0]
	Ref  SecretRef
	live bool // whether the secret is read again at run time
}

// NamedSecrets returns every setting that names a secret, in the order of the settings' fields. It leaves out the
// secrets of an audit log that is off, because nothing reads them.
func NamedSecrets(c *Settings) (all []NamedSecret) {
	used := *c
	if used.Audit.Off {
		used.Audit = auditConfig{}
	}
	visitSettings(reflect.ValueOf(used), "", "", func(path, name string, v reflect.Value) bool {
		if v.Type() == reflect.TypeFor[SecretRef]() && v.String() != "" && !store.IsPostgreSQL(v.String()) {
			all = append(all, NamedSecret{Name: path, Ref: SecretRef(v.String()), live: isLive(strings.TrimSuffix(name, "[]"))})
		}
		return true
	})
	return all
}

// SecretSums contains the hashes that the secrets had at the start of the server.
type SecretSums struct {
	mu    lockwatch.Mutex
	first map[SecretRef][sha256.Size]byte
}

// Record returns a reader that stores the hash of each secret when it is first read.
func (s *SecretSums) Record(read Secrets) Secrets {
	return func(ctx context.Context, ref SecretRef) (understudy.Secret, error) {
		secret, err := read(ctx, ref)
		if err != nil {
			return secret, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.first == nil {
			s.first = map[SecretRef][sha256.Size]byte{}
		}
		if _, known := s.first[ref]; !known {
			s.first[ref] = sha256.Sum256([]byte(secret.Reveal()))
		}
		return secret, nil
	}
}

// NeedRestart reads the secrets that the server reads only at its start. It returns the names of the settings
// whose secrets have changed since then.
func (s *SecretSums) NeedRestart(ctx context.Context, c *Settings, read Secrets) (names []string, err error) {
	for _, one := range NamedSecrets(c) {
		s.mu.Lock()
		was, known := s.first[one.Ref]
		s.mu.Unlock()
		if one.live || !known { // if the setting itself was changed, the function NeedRestart names it
			continue
		}
		secret, err := read(ctx, one.Ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		if sha256.Sum256([]byte(secret.Reveal())) != was {
			names = append(names, one.Name)
		}
	}
	return names, nil
}
