# Workers of a cluster.
variable "machine" {
  type = object({ name = string, ami = string, zone = string, key_name = string, root_gb = number })
}

variable "instance_type" {
  type = string
}

variable "instances" {
  type = number
}

variable "subnet_id" {
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

variable "cluster" {
  description = "The cluster's file."
  type        = string
}

module "machine" {
  source         = "../machine"
  count          = var.instances
  machine        = var.machine
  role           = "worker"
  name           = "worker-${count.index + 1}"
  instance_type  = var.instance_type
  subnet_id      = var.subnet_id
  security_group = var.security_group
  profile        = var.profile
  environment    = var.environment
  files          = { "cluster.yaml" = var.cluster }
}

output "plan" {
  value = module.machine[*].plan
}
