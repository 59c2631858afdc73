// Secret: what a setting points to, read.

package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"understudy"
	"understudy/internal/smallfile"
	"understudy/kit/charset"
)

// secretTimeout bounds a command that prints a secret.
const secretTimeout = 10 * time.Second

// maxSecret bounds what a file or command may hand over as a secret, in bytes.
const maxSecret = 64 << 10

// ReadSecret reads what a setting points to: a file or the output of a command, in UTF-8
// or with a byte order mark in UTF-16. It cuts one trailing line end. It refuses what no
// header field can hold, but for keys in PEM. The text itself never appears in an error.
func ReadSecret(ctx context.Context, setting, folder string) (understudy.Secret, error) {
	scheme, rest, _ := strings.Cut(setting, ":")
	var text []byte
	switch scheme {
	case "file":
		if !filepath.IsAbs(rest) {
			rest = filepath.Join(folder, rest)
		}
		var err error
		if text, err = smallfile.Read(rest, maxSecret); err != nil {
			return understudy.Secret{}, err
		}
	case "cmd":
		if strings.TrimSpace(rest) == "" {
			return understudy.Secret{}, errors.New("a secret is written file:PATH or cmd:COMMAND, and cmd: names no command")
		}
		ctx, cancel := context.WithTimeout(ctx, secretTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", rest)
		cmd.Dir, cmd.WaitDelay = folder, time.Second
		reap := ownGroup(cmd)
		out, err := cmd.Output()
		reap()
		if err != nil {
			return understudy.Secret{}, fmt.Errorf("command of a secret: %w", err)
		}
		text = out
	default:
		return understudy.Secret{}, fmt.Errorf("a secret is written file:PATH or cmd:COMMAND, never in the settings file itself")
	}
	if c, known := charset.Of("", text); known {
		whole := false
		if text, whole = c.Decode(text); !whole {
			return understudy.Secret{}, errors.New("the secret begins as UTF-16 and is cut or damaged; save it as UTF-8 text")
		}
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	isPEM := bytes.Contains(text, []byte("-----BEGIN ")) // comments may precede a certificate
	control := bytes.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && (!isPEM || r != '\n' && r != '\r') })
	hidden := bytes.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' && !isPEM })
	switch {
	case len(bytes.TrimSpace(text)) == 0 || len(text) > maxSecret:
		return understudy.Secret{}, fmt.Errorf("the secret is empty, blank or larger than %d bytes", maxSecret)
	case !utf8.Valid(text):
		return understudy.Secret{}, errors.New("the secret is not in UTF-8; save it as UTF-8 text")
	case control >= 0:
		return understudy.Secret{}, fmt.Errorf("the secret has a line end or another control character at byte %d, which no request "+
			"can carry; write it in one line", control)
	case hidden >= 0:
		return understudy.Secret{}, fmt.Errorf("the secret has a character that nobody sees at byte %d, such as a second byte order mark; "+
			"write it anew", hidden)
	}
	return understudy.NewSecret(string(text)), nil
}

// WarnOfBlanks returns a reader that calls warn for each secret that begins or ends with a
// blank, which is part of the secret and which nobody sees.
func WarnOfBlanks(read Secrets, warn func(string)) Secrets {
	return func(ctx context.Context, setting string) (understudy.Secret, error) {
		secret, err := read(ctx, setting)
		if text := secret.Reveal(); err == nil && strings.TrimSpace(text) != text {
			warn(setting + ": the secret begins or ends with a blank, which belongs to it")
		}
		return secret, err
	}
}

// Secrets reads one setting into a secret.
type Secrets func(ctx context.Context, setting string) (understudy.Secret, error)

// FileSecrets reads secrets beside the settings file.
func FileSecrets(folder string) Secrets {
	return func(ctx context.Context, setting string) (understudy.Secret, error) {
		return ReadSecret(ctx, setting, folder)
	}
}
