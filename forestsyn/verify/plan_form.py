"""The form of a plan: ids, ranges and limits. A plan without a fault here can be executed step by step."""

from __future__ import annotations

from collections.abc import Iterator

from forestsyn.ir.plan import Plan, PlanStep
from forestsyn.ir.plan import PlanOperation as Op
from forestsyn.ir.program import Buffer
from forestsyn.verify.plan_form_gpu import GpuForm
from forestsyn.verify.plan_form_switch import check_switches
from forestsyn.verify.plan_limits import (
    COLLECTIVES,
    MINIMUM_BYTES_MAX,
    OFFSET_MAX,
    PACKETS,
    ROUNDS_MAX,
    SHARED_SCRATCH_BYTES,
    THREADS_MAX,
    VECTOR_BYTES,
)
from forestsyn.verify.program_report import Effect, Place, ProgramLog


def check_plan_form(plan: Plan, log: ProgramLog) -> None:
    """Adds every fault of form to `log`; those that leave an execution without meaning block it."""
    _check_head(plan, log)
    for rank, gpu in enumerate(plan.gpus):
        GpuForm(plan, rank, gpu, log).check()
    if log.executable:
        check_switches(plan, log)


def _check_head(plan: Plan, log: ProgramLog) -> None:
    if not plan.gpus:
        log.violate("ranks", "it has no GPUs", effect=Effect.LOAD, blocks=True)
        return
    _check_chunks(plan, log)
    if not 32 <= plan.threads_per_block <= THREADS_MAX or plan.threads_per_block % 32:
        text = f"it asks for {plan.threads_per_block} threads, expected a multiple of 32 up to {THREADS_MAX}"
        log.violate("threads", text)
    if plan.buffer_alignment < VECTOR_BYTES or plan.buffer_alignment % VECTOR_BYTES:
        text = f"buffer_alignment is {plan.buffer_alignment}, expected a multiple of {VECTOR_BYTES}"
        log.violate("alignment", text, effect=Effect.LOAD if plan.buffer_alignment == 0 else Effect.RUN)
    if not 0 <= plan.minimum_bytes <= min(plan.maximum_bytes, MINIMUM_BYTES_MAX):
        text = f"the window is {plan.minimum_bytes} to {plan.maximum_bytes} bytes; of the first 31 bits are read"
        log.violate("window", text, effect=Effect.LOAD)
    if any(step.operation in PACKETS for step in _all_steps(plan)) and plan.protocol != "LL":
        text = f"it uses packets under protocol '{plan.protocol}'; only LL makes room for their flags in scratch"
        log.violate("protocol", text, blocks=True)
    if plan.collective not in COLLECTIVES:
        log.note(f"the result of '{plan.collective}' is not defined, so only form, progress and races are checked")
    flushes = [step for step in _all_steps(plan) if step.operation is Op.FLUSH]
    if any(len(step.destinations) < len(step.channel_ids) for step in flushes):
        text = "'flush' waits for as many channels as it has destinations, here for fewer than it names; 'pwsf' waits"
        log.warn("flush", text, log.runtimes)
    if log.executable and plan.buffer_alignment > 0:
        _check_sizes(plan, log)


def _check_chunks(plan: Plan, log: ProgramLog) -> None:
    first, ranks = plan.gpus[0], len(plan.gpus)
    for rank, gpu in enumerate(plan.gpus):
        place = Place(rank=rank)
        if gpu.input_chunks < 1 or gpu.output_chunks < 1 or gpu.scratch_chunks < 0:
            sizes = f"{gpu.input_chunks} input, {gpu.output_chunks} output and {gpu.scratch_chunks} scratch chunks"
            log.violate(
                "chunks",
                f"it has {sizes}; the loader divides by the first two",
                place,
                effect=Effect.LOAD,
                blocks=True,
            )
        elif (gpu.input_chunks, gpu.output_chunks) != (first.input_chunks, first.output_chunks):
            log.violate("chunks", "its buffers have other sizes than those of rank 0", place, blocks=True)
    shares = {"allgather": (1, ranks), "reduce-scatter": (ranks, 1)}.get(COLLECTIVES.get(plan.collective, ""), (1, 1))
    known = plan.collective in COLLECTIVES
    if known and first.input_chunks * shares[1] != first.output_chunks * shares[0]:
        text = (
            f"{plan.collective} over {ranks} ranks with {first.input_chunks} input and {first.output_chunks} output"
        )
        log.violate("chunks", f"{text} chunks: their sizes cannot agree", effect=Effect.LOAD, blocks=True)


def _check_sizes(plan: Plan, log: ProgramLog) -> None:
    """Sizes within the window at which 32-bit offsets or shared scratch overflow."""
    gpu = plan.gpus[0]
    chunks = gpu.output_chunks if plan.collective == "allgather" else gpu.input_chunks
    largest = min(plan.maximum_bytes, 2**64 - 1) // chunks
    packet = 2 if plan.protocol == "LL" else 1
    ends = max(max(own.input_chunks, own.output_chunks, own.scratch_chunks * packet) for own in plan.gpus)
    if largest * ends > OFFSET_MAX + 1:
        text = f"offsets have 32 bits, so chunks of more than {OFFSET_MAX // ends} bytes go wrong"
        log.warn("offsets", text, log.runtimes, chunk_bytes=OFFSET_MAX // ends)
    for step in _all_steps(plan):
        if (
            step.iteration is not None
            and largest * step.iteration.chunk_count > ROUNDS_MAX * step.iteration.unit_size
        ):
            most = ROUNDS_MAX * step.iteration.unit_size // step.iteration.chunk_count
            text = f"pipelines count {ROUNDS_MAX} rounds at most, so chunks of more than {most} bytes go wrong"
            log.warn("rounds", text, log.runtimes, chunk_bytes=most)
            break
    scratch = max(own.scratch_chunks for own in plan.gpus)
    if not plan.reuse_resources:
        return
    reached = [remote.buffer for own in plan.gpus for remote in own.remote_buffers]
    reached += [channels.buffer for own in plan.gpus for channels in own.channels if channels.buffer is not None]
    if any(buffer is not Buffer.SCRATCH for buffer in reached):
        text = "it reuses resources and reaches users' buffers of peers: those of the first call, in all calls"
        log.violate("reuse", text)
    limit = SHARED_SCRATCH_BYTES // (2 if plan.use_double_scratch_buffer else 1) // max(1, scratch)
    if scratch and largest > limit and not any(step.operation is Op.PIPELINE for step in _all_steps(plan)):
        text = f"shared scratch holds {scratch} chunks of at most {limit} bytes"
        log.warn("scratch", text, log.runtimes, chunk_bytes=limit)


def _all_steps(plan: Plan) -> Iterator[PlanStep]:
    for gpu in plan.gpus:
        for block in gpu.blocks:
            for step in block.steps:
                yield step
                yield from step.steps
