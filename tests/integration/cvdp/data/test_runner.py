import os

from cocotb_tools.runner import get_runner


def test_toggle():
    runner = get_runner(os.environ["SIM"])
    runner.build(
        sources=[os.environ["VERILOG_SOURCES"]],
        hdl_toplevel="toggle",
        always=True,
        timescale=("1ns", "1ns"),
    )
    runner.test(hdl_toplevel="toggle", test_module="test_toggle")
