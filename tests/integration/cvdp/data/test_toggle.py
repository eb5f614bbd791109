import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge


@cocotb.test()
async def toggles(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    dut.reset.value = 1
    for _ in range(2):
        await FallingEdge(dut.clk)
    assert dut.q.value == 0
    dut.reset.value = 0
    for expected in (1, 0, 1):
        await FallingEdge(dut.clk)
        assert dut.q.value == expected
