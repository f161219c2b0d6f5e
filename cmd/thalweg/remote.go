package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

// remoteFlags say how files of other machines are reached.
type remoteFlags struct {
	remoteFileFlags `group:"Remote files"`
}

type remoteFileFlags struct {
	CAFile      string            `help:"Authorities to trust: PEM file or directory." env:"THALWEG_CA_FILE,CAPI_CA_PATH" placeholder:"FILE"`
	S3Endpoint  string            `name:"s3-endpoint" help:"URL of an S3-compatible service; default: AWS." env:"THALWEG_S3_ENDPOINT" placeholder:"URL"`
	S3PathStyle *bool             `name:"s3-path-style" help:"Bucket in the path of S3 URLs." negatable:"" env:"THALWEG_S3_PATH_STYLE"`
	SFTPKey     map[string]string `help:"Private keys of SFTP users; default: those in ~/.ssh." env:"THALWEG_SFTP_KEYS" mapsep:"," placeholder:"USER=FILE,…"`
	KnownHosts  string            `help:"Host keys of SFTP servers; default: ~/.ssh/known_hosts." env:"THALWEG_KNOWN_HOSTS" placeholder:"FILE"`
	SpoolLimit  string            `help:"Most that copies of remote inputs take; default: 1TB." env:"THALWEG_SPOOL_LIMIT" placeholder:"SIZE"`
}

// client makes what reaches them. The caller closes it.
func (f *remoteFlags) client(log *slog.Logger) (*app.Remote, error) {
	limit, err := parseSize(f.SpoolLimit)
	if err != nil {
		return nil, err
	}
	keys := f.SFTPKey
	if len(keys) == 0 {
		if keys, err = capillariesKeys(os.Getenv("CAPI_PRIVATE_KEYS")); err != nil {
			return nil, err
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // only the files in ~/.ssh are missed, and their absence is reported
	}
	return app.NewRemote(app.RemoteConfig{CAPath: f.CAFile, S3Endpoint: f.S3Endpoint, S3PathStyle: f.S3PathStyle,
		SFTPKeys: keys, KnownHosts: f.KnownHosts, HomeDir: home, SpoolBytes: limit, Logger: log}), nil
}

// capillariesKeys reads the map of users to key files as Capillaries has it in
// its environment (user:file,user:file) or its configuration (a JSON object).
func capillariesKeys(text string) (map[string]string, error) {
	keys := map[string]string{}
	if text = strings.TrimSpace(text); text == "" {
		return keys, nil
	}
	bad := &fault.Error{Kind: fault.Script, Message: "CAPI_PRIVATE_KEYS is not a list of users and key files",
		Hint: "write USER:FILE,USER:FILE, or use THALWEG_SFTP_KEYS=USER=FILE,USER=FILE"}
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &keys); err != nil {
			bad.Err = fmt.Errorf("read it as JSON: %w", err)
			return nil, bad
		}
		return keys, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		user, file, ok := strings.Cut(pair, ":")
		if user, file = strings.TrimSpace(user), strings.TrimSpace(file); !ok || user == "" || file == "" {
			return nil, bad
		}
		keys[user] = file
	}
	return keys, nil
}
