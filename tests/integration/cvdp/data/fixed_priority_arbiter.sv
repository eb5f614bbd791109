// Proctor's own solution of the example problem cvdp_agentic_fixed_arbiter_0001.
module fixed_priority_arbiter (
    input            clk,
    input            reset,
    input      [7:0] req,
    input      [7:0] priority_override,
    output reg [7:0] grant,
    output reg       valid,
    output reg [2:0] grant_index
);
  wire [7:0] asked = (priority_override != 8'd0) ? priority_override : req;
  integer i;

  always @(posedge clk or posedge reset) begin
    grant <= 8'd0;
    valid <= 1'b0;
    grant_index <= 3'd0;
    if (!reset) begin
      // The last assignment counts: the lowest index.
      for (i = 7; i >= 0; i = i - 1) begin
        if (asked[i]) begin
          grant <= 8'd1 << i;
          valid <= 1'b1;
          grant_index <= i[2:0];
        end
      end
    end
  end
endmodule
