locals {
  prices = { for line in csvdecode(file("${path.module}/prices.csv")) : line.instance => {
    cpus       = tonumber(line.cpus)
    memory_gib = tonumber(line.memory_gib)
    usd        = tonumber(line.usd_per_hour)
    nvme       = line.nvme == "yes"
  } }

  # The notes' shapes: a worker has a quarter of the cores of a node of Cassandra, and there are as many.
  shape = { copies = 1, parts = "cassandra", cassandra_hosts = var.nodes, workers = var.nodes, hub = "c7g.large" }
  flavors = {
    single = { copies = 0, parts = "disk", cassandra_hosts = 0, workers = 0, hub = "c7g.2xlarge", cassandra = null, worker = null }
    team   = { copies = 3, parts = "s3", cassandra_hosts = 3, workers = var.workers, hub = "c7g.large", cassandra = "c7g.2xlarge", worker = "c7g.2xlarge" }

    "aws.arm64.c7g.8"  = merge(local.shape, { cassandra = "c7gd.2xlarge", worker = "c7g.large" })
    "aws.arm64.c7g.16" = merge(local.shape, { cassandra = "c7gd.4xlarge", worker = "c7g.xlarge" })
    "aws.arm64.c7g.32" = merge(local.shape, { cassandra = "c7gd.8xlarge", worker = "c7g.2xlarge" })
    "aws.arm64.c7g.64" = merge(local.shape, { cassandra = "c7gd.16xlarge", worker = "c7g.4xlarge" })
  }
  flavor = local.flavors[var.flavor]
  alone  = var.flavor == "single"

  none      = { cpus = 0, memory_gib = 0, usd = 0, nvme = false }
  hub       = local.prices[local.flavor.hub]
  worker    = local.alone ? local.none : local.prices[local.flavor.worker]
  cassandra = local.alone ? local.none : local.prices[local.flavor.cassandra]

  # An hour of what is beside the machines, us-east-1 in 2025: a public address 0.005 and a NAT gateway 0.045 (AWS's list
  # of prices for VPC), gp3 disks 0.08 a GB and month of 730 hours (its list for EBS).
  volumes_gb  = local.alone ? var.data_gb : local.cassandra.nvme ? 0 : var.data_gb * local.flavor.cassandra_hosts
  machines    = 1 + local.flavor.workers + local.flavor.cassandra_hosts
  besides_usd = (local.alone ? 0.005 : 0.005 + 0.045 + 0.005) + (local.volumes_gb + local.root_gb * local.machines) * 0.08 / 730
  root_gb     = 40
}
