module toggle (input clk, input reset, output reg q);
  always @(posedge clk) q <= reset ? 1'b0 : ~q;
endmodule
