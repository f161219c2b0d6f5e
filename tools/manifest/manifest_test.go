package manifest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are what the manifest may have.
func kinds() map[string]any {
	return map[string]any{
		"v1/ConfigMap": &core.ConfigMap{}, "v1/ServiceAccount": &core.ServiceAccount{},
		"apps/v1/Deployment": &apps.Deployment{}, "networking.k8s.io/v1/NetworkPolicy": &networking.NetworkPolicy{},
	}
}

// Every document decodes into its type, with no key unknown or twice, and no pod may do more than it needs.
func TestManifest(t *testing.T) {
	text, err := os.ReadFile("../../deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployments := 0
	for i, document := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
		var of meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			t.Fatalf("document %d: %v", i+1, err)
		}
		into, known := kinds()[of.APIVersion+"/"+of.Kind]
		if !known {
			t.Fatalf("document %d is a %s of %s", i+1, of.Kind, of.APIVersion)
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Errorf("document %d, %s: %v", i+1, of.Kind, err)
		}
		if d, ok := into.(*apps.Deployment); ok {
			deployments++
			holdPod(t, d)
		}
	}
	if deployments != 2 {
		t.Errorf("%d deployments", deployments)
	}
	if strings.Contains(string(text), "stringData") || strings.Contains(string(text), "kind: Secret") {
		t.Error("a secret is in the file")
	}
}

func holdPod(t *testing.T, d *apps.Deployment) {
	t.Helper()
	pod := d.Spec.Template.Spec
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("%s selects other pods than its own", d.Name)
		}
	}
	held := pod.SecurityContext
	if held == nil || !is(held.RunAsNonRoot, true) || held.SeccompProfile == nil ||
		!is(pod.AutomountServiceAccountToken, false) || pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Errorf("%s: its pods may do too much", d.Name)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.HostPath != nil {
			t.Errorf("%s: %s is of the host", d.Name, v.Name)
		}
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		s := c.SecurityContext
		if s == nil || !is(s.ReadOnlyRootFilesystem, true) || !is(s.AllowPrivilegeEscalation, false) ||
			s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: %s may do too much", d.Name, c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: %s has no limit of memory", d.Name, c.Name)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: there is no volume %s", d.Name, m.Name)
			}
		}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				t.Errorf("%s: port %d of the host", d.Name, port.HostPort)
			}
		}
	}
}

func is(said *bool, want bool) bool { return said != nil && *said == want }
