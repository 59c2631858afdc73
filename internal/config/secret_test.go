// Tests of the settings that name secrets.

package config

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
)

// fillSecrets makes one element of every slice and map, and writes the pattern of each secret
// into it. It returns the patterns.
func fillSecrets(t *testing.T, v reflect.Value, name string) (names []string) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[SecretRef]():
		v.SetString("file:" + name)
		return []string{name}
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		return fillSecrets(t, v.Elem(), name)
	case v.Kind() == reflect.Struct && !isUnmarshaler(v.Type()):
		for i := range v.NumField() {
			word, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if word == "-" {
				continue // it is no setting
			}
			if strings.Contains(word, "secret") && v.Field(i).Type() == reflect.TypeFor[string]() {
				t.Errorf("%s.%s names a secret and is a string, want a SecretRef", name, word)
			}
			names = append(names, fillSecrets(t, v.Field(i), strings.TrimPrefix(name+"."+word, "."))...)
		}
	case v.Kind() == reflect.Slice && !isUnmarshaler(v.Type()):
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return fillSecrets(t, v.Index(0), name)
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Pointer:
		v.Set(reflect.MakeMap(v.Type()))
		one := reflect.New(v.Type().Elem()).Elem()
		names = fillSecrets(t, one, name+".NAME")
		v.SetMapIndex(reflect.ValueOf("NAME"), one)
	}
	return names
}

func TestCheckReadsEverySecretThatSettingsName(t *testing.T) {
	var cfg Settings
	names := fillSecrets(t, reflect.ValueOf(&cfg).Elem(), "")
	for _, want := range []string{"sources.NAME.secret", "sources.NAME.pool", "sources.NAME.token.secret", "credentials.secret",
		"webhooks.secret", "mail.secret", "viewer.oidc.secret", "audit.key", "audit.send_secret", "audit.send_ca"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not found among %v", want, names)
		}
	}
	for _, name := range names {
		err := CheckSecrets(t.Context(), &cfg, func(_ context.Context, ref SecretRef) (understudy.Secret, error) {
			if ref == SecretRef("file:"+name) {
				return understudy.Secret{}, errors.New("not there")
			}
			return understudy.Secret{}, nil
		})
		if err == nil {
			t.Errorf("%s cannot be read, and check accepts it", name)
		}
	}
}

func TestAuditSecretsWithWrongContentsAreRefused(t *testing.T) {
	for _, set := range []func(*Settings){
		func(c *Settings) { c.Audit.Key = "file:x" },
		func(c *Settings) { c.Audit.Send, c.Audit.SendCA = "syslog+tls://h:6514", "file:x" },
	} {
		var cfg Settings
		set(&cfg)
		err := CheckSecrets(t.Context(), &cfg, func(context.Context, SecretRef) (understudy.Secret, error) {
			return understudy.NewSecret("no key"), nil
		})
		if err == nil {
			t.Errorf("%+v is accepted", cfg.Audit)
		}
	}
}

func TestSecretsReplacedWhileServingNeedARestart(t *testing.T) {
	now := map[SecretRef]string{}
	read := func(_ context.Context, ref SecretRef) (understudy.Secret, error) {
		if now[ref] == "gone" {
			return understudy.Secret{}, errors.New("not there")
		}
		return understudy.NewSecret("text" + now[ref]), nil
	}
	var cfg Settings
	names := fillSecrets(t, reflect.ValueOf(&cfg).Elem(), "")
	var sums SecretSums
	started := sums.Record(read)
	for _, s := range NamedSecrets(&cfg) {
		if _, err := started(t.Context(), s.Ref); err != nil {
			t.Fatal(err)
		}
	}
	if restart, err := sums.NeedRestart(t.Context(), &cfg, started); err != nil || len(restart) > 0 {
		t.Errorf("nothing was replaced: %v, %v", restart, err)
	}
	for _, name := range names {
		now[SecretRef("file:"+name)] = "2"
	}
	restart, err := sums.NeedRestart(t.Context(), &cfg, started)
	want := "sources.NAME.token.secret store.s3.secret nodes.secret audit.key audit.send_secret audit.send_ca"
	if err != nil || strings.Join(restart, " ") != want {
		t.Errorf("%v, %v, want %s", restart, err, want)
	}
	now["file:audit.key"] = "gone"
	if _, err := sums.NeedRestart(t.Context(), &cfg, started); err == nil || !strings.HasPrefix(err.Error(), "audit.key: ") {
		t.Errorf("a secret that cannot be read: %v", err)
	}
}

// A command that fails, or is too slow, is named by its setting and the cause. Neither the command nor what it
// wrote stands in an error or a warning: both may hold the secret.
func TestACommandOfASecretThatFailsIsNamedWithoutTheSecret(t *testing.T) {
	late, cancel := context.WithDeadlineCause(t.Context(), time.Now(), errors.New("it has not ended within 10s"))
	defer cancel()
	for command, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"echo hunter2; echo hunter2 >&2; exit 3": {t.Context(), "failed: exit status 3; run it by hand"},
		"/nowhere/hunter2":                       {t.Context(), "failed: exit status 127; run it by hand"},
		"echo hunter2; sleep 600":                {late, "failed: it has not ended within 10s; run it by hand"},
		"true":                                   {t.Context(), "the secret is empty or blank"},
		"head -c 70000 /dev/zero":                {t.Context(), "the secret has more than 65536 bytes"},
	} {
		cfg := Settings{Webhooks: []*Webhook{{Name: "crm", Secret: SecretRef("cmd:" + command)}}}
		err := CheckSecrets(c.ctx, &cfg, FileSecrets(t.TempDir()))
		checktest.MustTrue(t, err != nil, "%s: err is nil", command)
		checktest.True(t, strings.HasPrefix(err.Error(), "webhooks: crm.secret: "), "%s: err.Error() is %q", command,
			err.Error())
		checktest.Contains(t, err.Error(), c.want, "%s: err.Error()", command)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error holds the secret: %v", command, err)
		}
	}
	cfg := Settings{Webhooks: []*Webhook{{Name: "crm", Secret: "cmd:printf ' hunter2'"}}}
	var warnings []string
	warned := WarnOfBlanks(FileSecrets(t.TempDir()), &cfg, func(text string) { warnings = append(warnings, text) })
	if err := CheckSecrets(t.Context(), &cfg, warned); err != nil {
		t.Fatal(err)
	}
	if len(warnings) == 0 || !strings.HasPrefix(warnings[0], "webhooks: crm.secret: the secret begins") {
		t.Errorf("warnings %q", warnings)
	}
}
