// Secret: what a setting points to, read.

package config

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"understudy"
)

// secretTimeout bounds a command that prints a secret.
const secretTimeout = 10 * time.Second

// maxSecret bounds what a file or command may hand over as a secret, in bytes.
const maxSecret = 64 << 10

// readSecret fetches what a setting points to. One trailing newline is cut.
// The text itself never appears in an error.
func ReadSecret(ctx context.Context, setting, folder string) (understudy.Secret, error) {
	scheme, rest, _ := strings.Cut(setting, ":")
	var text []byte
	switch scheme {
	case "file":
		if !filepath.IsAbs(rest) {
			rest = filepath.Join(folder, rest)
		}
		info, err := os.Stat(rest)
		if err != nil {
			return understudy.Secret{}, err
		}
		if info.Size() > maxSecret {
			return understudy.Secret{}, fmt.Errorf("%s is larger than %d bytes", rest, maxSecret)
		}
		if text, err = os.ReadFile(rest); err != nil {
			return understudy.Secret{}, err
		}
	case "cmd":
		ctx, cancel := context.WithTimeout(ctx, secretTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", rest)
		cmd.Dir, cmd.WaitDelay = folder, time.Second
		out, err := cmd.Output()
		if err != nil {
			return understudy.Secret{}, fmt.Errorf("command of a secret: %w", err)
		}
		text = out
	default:
		return understudy.Secret{}, fmt.Errorf("a secret is written file:PATH or cmd:COMMAND, never in the settings file itself")
	}
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if len(bytes.TrimSpace(text)) == 0 || len(text) > maxSecret {
		return understudy.Secret{}, fmt.Errorf("the secret is empty, blank or larger than %d bytes", maxSecret)
	}
	return understudy.NewSecret(string(text)), nil
}

// Secrets reads one setting into a secret.
type Secrets func(ctx context.Context, setting string) (understudy.Secret, error)

// FileSecrets reads secrets beside the settings file.
func FileSecrets(folder string) Secrets {
	return func(ctx context.Context, setting string) (understudy.Secret, error) {
		return ReadSecret(ctx, setting, folder)
	}
}
