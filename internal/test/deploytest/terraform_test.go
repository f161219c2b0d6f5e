package deploytest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// providersVariable names a mirror of providers in the file system; without it Terraform asks its registry.
const providersVariable = "THALWEG_TEST_PROVIDERS"

// program returns the path of a tool, or leaves the test out.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("left out: there is no %s here (make deploy-check)", name)
	}
	return path
}

// terraform runs in dir and returns what it prints.
func terraform(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*effort.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, "terraform"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "NO_COLOR=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		t.Logf("terraform %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), err
}

// copied returns a copy of deploy/terraform, beside one of deploy/node, that has its provider.
func copied(t *testing.T) string {
	t.Helper()
	program(t, "terraform")
	dir := t.TempDir()
	for _, name := range []string{"terraform", "node"} {
		from := os.DirFS(filepath.Join("../../../deploy", name))
		require.NoError(t, os.CopyFS(filepath.Join(dir, name), from))
	}
	dir = filepath.Join(dir, "terraform")
	for _, stale := range []string{".terraform", ".terraform.lock.hcl"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, stale)))
	}
	init := []string{"init", "-backend=false", "-input=false"}
	if at := os.Getenv(providersVariable); at != "" {
		init = append(init, "-plugin-dir="+at)
	}
	if out, err := terraform(t, dir, init...); err != nil {
		require.Empty(t, os.Getenv(providersVariable), out)
		t.Skipf("left out: the provider cannot be had; %s names a mirror of the file system\n%s", providersVariable, out)
	}
	return dir
}

// message is a line of `terraform test -json`.
type message struct {
	Type string `json:"type"`
	Text string `json:"@message"`
	Run  string `json:"@testrun"`
	Plan struct {
		Changes []struct {
			Type   string `json:"type"`
			Mode   string `json:"mode"`
			Change struct {
				After map[string]any `json:"after"`
			} `json:"change"`
		} `json:"resource_changes"`
	} `json:"test_plan"`
	State struct {
		Root folder `json:"root_module"`
	} `json:"test_state"`
	Summary struct {
		Passed  int `json:"passed"`
		Skipped int `json:"skipped"`
	} `json:"test_summary"`
	Diagnostic struct {
		Detail string `json:"detail"`
	} `json:"diagnostic"`
}

type folder struct {
	Resources []struct {
		Type   string         `json:"type"`
		Mode   string         `json:"mode"`
		Values map[string]any `json:"values"`
	} `json:"resources"`
	Children []folder `json:"child_modules"`
}

type resource struct {
	kind   string
	values map[string]any
}

func (f folder) all() (found []resource) {
	for _, r := range f.Resources {
		if r.Mode == "managed" {
			found = append(found, resource{r.Type, r.Values})
		}
	}
	for _, child := range f.Children {
		found = append(found, child.all()...)
	}
	return found
}

// tested runs `terraform test`, and returns what it says, and the resources of each run.
func tested(t *testing.T, dir string) (said []message, runs map[string][]resource, err error) {
	t.Helper()
	out, err := terraform(t, dir, "test", "-json", "-verbose")
	runs = map[string][]resource{}
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 256<<20)
	for lines.Scan() {
		var m message
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m), lines.Text())
		said = append(said, m)
		for _, r := range m.Plan.Changes {
			if r.Mode == "managed" && r.Change.After != nil { // else it is what an earlier run has made, and goes
				runs[m.Run] = append(runs[m.Run], resource{r.Type, r.Change.After})
			}
		}
		runs[m.Run] = append(runs[m.Run], m.State.Root.all()...)
	}
	require.NoError(t, lines.Err())
	maps.DeleteFunc(runs, func(_ string, found []resource) bool { return len(found) == 0 })
	return said, runs, err
}

func TestTerraform(t *testing.T) {
	effort.Unraced(t)
	dir := copied(t)
	out, err := terraform(t, dir, "fmt", "-check", "-diff", "-recursive")
	require.NoError(t, err, out)
	out, err = terraform(t, dir, "validate")
	require.NoError(t, err, out)
	began := time.Now()
	said, runs, err := tested(t, dir)
	for _, m := range said {
		if m.Type == "diagnostic" {
			t.Error(m.Text, m.Diagnostic.Detail)
		}
	}
	require.NoError(t, err)
	effort.Promised(t, began, 30*time.Second)
	summary := said[slices.IndexFunc(said, func(m message) bool { return m.Type == "test_summary" })].Summary
	require.Zero(t, summary.Skipped)
	require.GreaterOrEqual(t, summary.Passed, 14)
	delete(runs, "without_cassandra") // refused, as is unknown
	delete(runs, "unknown")
	require.Equal(t, 12, len(runs), "single, team and ten shapes")
	for run, resources := range runs {
		t.Run(run, func(t *testing.T) { holdTo(t, resources) })
	}
}

// known are the kinds of resources that holdTo judges, or that have nothing to judge. Another one needs a rule.
var known = []string{
	"aws_default_security_group", "aws_ebs_volume", "aws_eip", "aws_iam_instance_profile", "aws_iam_role",
	"aws_iam_role_policy", "aws_instance", "aws_internet_gateway", "aws_nat_gateway", "aws_route_table",
	"aws_route_table_association", "aws_security_group", "aws_subnet", "aws_volume_attachment", "aws_vpc",
	"aws_vpc_endpoint", "aws_vpc_security_group_egress_rule", "aws_vpc_security_group_ingress_rule",
}

// holdTo fails if resources let the world in, keep data on a plain disk, or may do more than what is named.
func holdTo(t *testing.T, resources []resource) {
	t.Helper()
	instances, public := 0, 0
	for _, r := range resources {
		assert.Contains(t, known, r.kind)
		switch r.kind {
		case "aws_instance":
			instances++
			if r.values["associate_public_ip_address"] == true {
				public++
			}
			options := r.values["metadata_options"].([]any)[0].(map[string]any)
			assert.Equal(t, "required", options["http_tokens"])
			assert.Equal(t, true, r.values["root_block_device"].([]any)[0].(map[string]any)["encrypted"])
			assert.Empty(t, r.values["ebs_block_device"])
		case "aws_ebs_volume":
			assert.Equal(t, true, r.values["encrypted"])
		case "aws_security_group", "aws_default_security_group":
			assert.Empty(t, r.values["ingress"], "rules are resources of their own")
		case "aws_vpc_security_group_ingress_rule":
			assert.Contains(t, []any{nil, "203.0.113.0/24"}, r.values["cidr_ipv4"])
			assert.Nil(t, r.values["cidr_ipv6"])
			assert.Equal(t, "tcp", r.values["ip_protocol"])
			assert.Equal(t, r.values["from_port"], r.values["to_port"])
		case "aws_subnet":
			assert.NotEqual(t, true, r.values["map_public_ip_on_launch"])
		case "aws_iam_role_policy":
			holdPolicy(t, r.values["policy"].(string))
		case "aws_iam_role":
			assert.Empty(t, r.values["managed_policy_arns"])
		}
	}
	assert.Equal(t, 1, public, "of %d machines", instances)
}

func holdPolicy(t *testing.T, text string) {
	t.Helper()
	var policy struct {
		Version   string
		Statement []struct {
			Effect           string
			Action, Resource []string
		}
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields() // NotAction, Principal
	require.NoError(t, decoder.Decode(&policy), text)
	require.NotEmpty(t, policy.Statement)
	const bucket, parameter = "arn:aws:s3:::example-data", "arn:aws:ssm:us-east-1:123456789012:parameter/thalweg/cassandra"
	for _, s := range policy.Statement {
		for _, action := range s.Action {
			assert.NotContains(t, action, "*")
		}
		require.NotEmpty(t, s.Resource)
		for _, at := range s.Resource {
			folder := slices.Contains([]string{"/install/*", "/data/*", "/parts/*"}, strings.TrimPrefix(at, bucket))
			assert.True(t, at == bucket || at == parameter || folder, at)
		}
	}
}

// The checks that every plan makes fail where they should.
func TestChecksOfThePlan(t *testing.T) {
	effort.Unraced(t)
	dir := copied(t)
	change := func(name, from, to string) {
		t.Helper()
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), from)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
	}
	change("modules/machine/main.tf", `"required"`, `"optional"`)
	change("modules/machine/main.tf", "size              = var.data_gb\n  encrypted         = true",
		"size = var.data_gb\n encrypted = false")
	change("modules/machine/main.tf", "package_update = true",
		`package_update = join("", [for i in range(1000) : sha256(i)])`)
	change("modules/network/main.tf", "from_port         = 22", "from_port         = 21")
	change("modules/hub/main.tf", "public         = true", "public         = false")
	change("roles.tf", `"s3:ListBucket", `, `"s3:List*", `)
	change("roles.tf", `"${local.bucket}/data/*"`, `"*"`)
	tests := filepath.Join(dir, "tests", "flavors.tftest.hcl")
	text, err := os.ReadFile(tests)
	require.NoError(t, err)
	single, _, _ := strings.Cut(string(text), `run "team"`)
	require.NoError(t, os.WriteFile(tests, []byte(single), 0o600))

	said, _, err := tested(t, dir)
	require.Error(t, err)
	var found []string
	for _, m := range said {
		found = append(found, m.Diagnostic.Detail)
	}
	all := strings.Join(found, "\n")
	for _, want := range []string{"answers IMDSv1", "is not encrypted", "16 KiB of user data", "More is let in",
		"Another machine than the hub", "may do more", "more than one bucket"} {
		assert.Contains(t, all, want)
	}
}
