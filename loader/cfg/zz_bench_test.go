package cfg
import ("testing";"wpptrace/loader/image")
func BenchmarkDev(b *testing.B){ im,_:=image.OpenFile("/usr/bin/python3.11"); b.ReportAllocs(); for b.Loop(){ if _,err:=Recover(im);err!=nil{b.Fatal(err)}}}
