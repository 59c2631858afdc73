// The files for compose.

package operation

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// compose is what the test reads of a file for compose.
type compose struct {
	Services map[string]struct {
		Image       string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		ReadOnly    bool `yaml:"read_only"`
		Healthcheck struct{ Test []string }
	}
	Volumes map[string]any
}

// TestComposeFiles reads the files for compose. What a service uses is defined there, its variables are those that PostgreSQL or the settings
// know, and the program accepts its settings.
func TestComposeFiles(t *testing.T) {
	for name, want := range map[string]int{"compose.yaml": 1, "compose-cluster.yaml": 2} {
		var c compose
		checktest.MustNoError(t, yaml.Unmarshal([]byte(rig.ReadFile(t, filepath.Join("../../deploy", name))), &c), "%s", name)
		servers := 0
		for service, s := range c.Services {
			settings := ""
			for _, volume := range s.Volumes {
				parts := strings.Split(volume, ":")
				_, isDefined := c.Volumes[parts[0]]
				checktest.True(t, isDefined || strings.HasPrefix(parts[0], "./"), "%s: %s: the volume %s is not defined", name, service, volume)
				if len(parts) > 1 && parts[1] == "/etc/understudy/understudy.yml" {
					settings = parts[0]
				}
			}
			for _, port := range s.Ports {
				checktest.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s: %s: the port %s is open to the network", name, service, port)
			}
			if !strings.Contains(s.Image, "understudy") {
				continue
			}
			servers++
			checktest.True(t, s.ReadOnly, "%s: %s may write outside its volume", name, service)
			checktest.Equal(t, strings.Join(s.Healthcheck.Test, " "), "CMD /usr/bin/understudy status --config /etc/understudy/understudy.yml",
				"%s: health check of %s", name, service)
			checkSettings(t, filepath.Join("../../deploy", settings), s.Environment)
		}
		checktest.Equal(t, servers, want, "%s: servers", name)
	}
}

// checkSettings lets the program check the settings of a service, with made-up secrets.
func checkSettings(t *testing.T, settings string, environment map[string]string) {
	t.Helper()
	text, folder := rig.ReadFile(t, settings), t.TempDir()
	checktest.MustNoError(t, os.Mkdir(filepath.Join(folder, "secrets"), 0o700), "folder")
	for _, secret := range regexp.MustCompile(`secrets/[\w.]+`).FindAllString(text, -1) {
		if secret != "secrets/users" {
			err := os.WriteFile(filepath.Join(folder, secret), []byte("a secret of many characters 0123456789"), 0o600)
			checktest.MustNoError(t, err, "secret")
		}
	}
	path := filepath.Join(folder, "understudy.yml")
	checktest.MustNoError(t, os.WriteFile(path, []byte(text), 0o600), "settings")
	env := os.Environ()
	for name, value := range environment {
		checktest.True(t, name == "PGPASSFILE" || strings.Contains(text, "${"+name+"}"), "%s does not use the variable %s", settings, name)
		env = append(env, name+"="+value)
	}
	for _, args := range [][]string{{"users", "add", "anna", "--role", "support"}, {"check"}} {
		cmd := exec.CommandContext(t.Context(), rig.Program, append(args, "--config", path)...)
		cmd.Dir, cmd.Env, cmd.Stdin = folder, env, strings.NewReader(password+"\n")
		out, err := cmd.CombinedOutput()
		checktest.NoError(t, err, "%s of %s: %s", args[0], settings, out)
	}
}
