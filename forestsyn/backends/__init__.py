"""Back ends: a program as the text that a runtime reads. They translate and decide nothing."""

from forestsyn.backends.msccl_xml import emit_msccl_xml
from forestsyn.backends.mscclpp_json import emit_mscclpp_json

__all__ = ["emit_msccl_xml", "emit_mscclpp_json"]
