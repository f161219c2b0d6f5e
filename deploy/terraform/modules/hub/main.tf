# The machine that people reach: the server and its scheduler; without a cluster it works on runs, too.
variable "machine" {
  type = object({ name = string, ami = string, zone = string, key_name = string, root_gb = number })
}

variable "instance_type" {
  type = string
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
  description = "The cluster's file; null: no cluster."
  type        = string
}

variable "data_gb" {
  type = number
}

module "machine" {
  source         = "../machine"
  machine        = var.machine
  role           = var.cluster == null ? "single" : "hub"
  name           = "hub"
  instance_type  = var.instance_type
  subnet_id      = var.subnet_id
  security_group = var.security_group
  profile        = var.profile
  public         = true
  data_gb        = var.data_gb
  environment    = var.environment
  files          = var.cluster == null ? {} : { "cluster.yaml" = var.cluster }
}

output "public_ip" {
  value = module.machine.public_ip
}

output "plan" {
  value = [module.machine.plan]
}
