// Package manifest holds deploy/kubernetes.yaml to the types of Kubernetes. It is beside the linter, since the
// product needs none of them.
package manifest
