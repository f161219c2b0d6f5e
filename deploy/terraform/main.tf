# The latest Debian 12 of its makers. A machine keeps the image that it began with.
data "aws_ami" "debian" {
  owners      = ["136693071363"]
  most_recent = true
  filter {
    name   = "name"
    values = ["debian-12-arm64-*"]
  }
}

locals {
  # What all machines have in common, for module machine.
  machine = {
    name     = var.name
    ami      = data.aws_ami.debian.id
    zone     = "${var.region}${var.zone}"
    key_name = var.ssh_key_name
    root_gb  = local.root_gb
  }
  environment = {
    REGION             = var.region
    BUCKET             = var.bucket
    PASSWORD_PARAMETER = var.password_parameter
  }
  thalweg = merge(local.environment, {
    PACKAGE        = "install/${var.package.file}"
    PACKAGE_SHA256 = var.package.sha256
    DATA           = "/var/lib/thalweg"
  })

  # The cluster's file (docs/fleet.md); JSON is YAML.
  hosts = local.alone ? [] : module.cassandra[0].addresses
  cluster = jsonencode({
    version = 1
    state = { cassandra = {
      hosts    = local.hosts, keyspace = "thalweg", replication = local.flavor.copies
      username = "thalweg", password_file = "{env.CREDENTIALS_DIRECTORY}/cassandra"
    } }
    parts  = local.flavor.parts == "s3" ? { s3 = { url = "s3://${var.bucket}/parts", region = var.region } } : { cassandra = {} }
    worker = { scratch = "/var/lib/thalweg/scratch", metrics = "0.0.0.0:9464" }
  })
}

module "network" {
  source      = "./modules/network"
  name        = var.name
  region      = var.region
  zone        = local.machine.zone
  admin_cidrs = var.admin_cidrs
  cluster     = !local.alone
}

module "hub" {
  source         = "./modules/hub"
  depends_on     = [module.network] # packages come by its gateways
  machine        = local.machine
  instance_type  = local.flavor.hub
  subnet_id      = module.network.public_subnet_id
  security_group = module.network.security_groups.hub
  profile        = aws_iam_instance_profile.machine["work"].name
  environment    = local.thalweg
  cluster        = local.alone ? null : local.cluster
  data_gb        = local.alone ? var.data_gb : 0
}

module "worker" {
  source         = "./modules/worker"
  depends_on     = [module.network] # packages come by its gateways
  count          = local.alone ? 0 : 1
  machine        = local.machine
  instance_type  = local.flavor.worker
  instances      = local.flavor.workers
  subnet_id      = module.network.private_subnet_id
  security_group = module.network.security_groups.worker
  profile        = aws_iam_instance_profile.machine["work"].name
  environment    = local.thalweg
  cluster        = local.cluster
}

module "cassandra" {
  source         = "./modules/cassandra"
  depends_on     = [module.network] # packages come by its gateways
  count          = local.alone ? 0 : 1
  machine        = local.machine
  instance_type  = local.flavor.cassandra
  hosts          = local.flavor.cassandra_hosts
  copies         = local.flavor.copies
  data_gb        = local.cassandra.nvme ? 0 : var.data_gb
  subnet_id      = module.network.private_subnet_id
  subnet_cidr    = module.network.private_cidr
  security_group = module.network.security_groups.cassandra
  profile        = aws_iam_instance_profile.machine["cassandra"].name
  environment = merge(local.environment, {
    PACKAGE        = "install/${var.cassandra.file}"
    PACKAGE_SHA256 = var.cassandra.sha256
    DATA           = "/var/lib/cassandra"
  })
}
