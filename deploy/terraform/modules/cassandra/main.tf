# Nodes of Cassandra with fixed addresses and evenly spaced tokens, so that all may start at once.
variable "machine" {
  type = object({ name = string, ami = string, zone = string, key_name = string, root_gb = number })
}

variable "instance_type" {
  type = string
}

variable "hosts" {
  type = number
}

variable "copies" {
  type = number
}

variable "data_gb" {
  description = "Volume of each node; 0: it has disks of its own, which do not outlive a stop."
  type        = number
}

variable "subnet_id" {
  type = string
}

variable "subnet_cidr" {
  type = string
}

variable "security_group" {
  type = string
}

variable "profile" {
  type = string
}

variable "environment" {
  type = map(string)
}

locals {
  addresses = [for i in range(var.hosts) : cidrhost(var.subnet_cidr, 11 + i)]
  tokens    = [for i in range(var.hosts) : format("%d", floor(i * pow(2, 64) / var.hosts) - pow(2, 63))]
  settings = [for i in range(var.hosts) : yamlencode({
    cluster_name           = var.machine.name
    num_tokens             = 1
    initial_token          = local.tokens[i]
    auto_bootstrap         = false
    partitioner            = "org.apache.cassandra.dht.Murmur3Partitioner"
    endpoint_snitch        = "SimpleSnitch"
    listen_address         = local.addresses[i]
    rpc_address            = local.addresses[i]
    storage_port           = 7000
    native_transport_port  = 9042
    start_native_transport = true
    seed_provider          = [{ class_name = "org.apache.cassandra.locator.SimpleSeedProvider", parameters = [{ seeds = join(",", slice(local.addresses, 0, min(3, var.hosts))) }] }]
    data_file_directories  = ["/var/lib/cassandra/data"]
    commitlog_directory    = "/var/lib/cassandra/commitlog"
    hints_directory        = "/var/lib/cassandra/hints"
    saved_caches_directory = "/var/lib/cassandra/saved_caches"
    cdc_raw_directory      = "/var/lib/cassandra/cdc_raw"
    commitlog_sync         = "periodic"
    commitlog_sync_period  = "10000ms"
    auto_snapshot          = false
    authenticator          = "PasswordAuthenticator"
    authorizer             = "CassandraAuthorizer"
    role_manager           = "CassandraRoleManager"
  })]
}

module "machine" {
  source         = "../machine"
  count          = var.hosts
  machine        = var.machine
  role           = "cassandra"
  name           = "cassandra-${count.index + 1}"
  instance_type  = var.instance_type
  subnet_id      = var.subnet_id
  security_group = var.security_group
  profile        = var.profile
  address        = local.addresses[count.index]
  data_gb        = var.data_gb
  packages       = ["mdadm"]
  environment = merge(var.environment, {
    ADDRESS = local.addresses[count.index]
    COPIES  = tostring(var.copies)
    NODES   = tostring(var.hosts)
    FIRST   = count.index == 0 ? "yes" : "no"
  })
  files = { "cassandra.yaml" = local.settings[count.index] }
}

output "addresses" {
  value = local.addresses
}

output "plan" {
  value = module.machine[*].plan
}

output "settings" {
  value = local.settings
}
