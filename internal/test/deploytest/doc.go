// Package deploytest holds deploy/terraform and deploy/node to what docs/deploy.md says of them. Its tests have
// Terraform plan every flavor against a mocked provider, without a cloud; each is left out, and says so, where the
// tool that it needs is not there. `make deploy-check` installs the tools that Debian has.
package deploytest
