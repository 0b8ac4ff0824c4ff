package cfg_test
import ("testing";"os";"strings";"wpptrace/loader/cfg";"fmt")
func TestBig(t *testing.T){ for _,path:=range strings.Fields(os.Getenv("DEVF")) {
 p:=recoverFile(t,path); truth:=relocatedTargets(t,path,p)
 tables,slots,inv,missed,flagged,exact:=0,0,0,0,0,0
 found:=map[*cfg.Routine]map[uint64]bool{}
 ex:=""
 for _,r:=range p.Routines { if r.LeftOut=="" {exact++}
  for b:=range r.Blocks { if r.Blocks[b].End==cfg.Table { tables++; slots+=len(r.Blocks[b].Table.Targets); addTargets(found,r,b)}}
  for to:=range truth[r] { if !found[r][to] { if r.LeftOut=="" {missed++; if len(ex)<600 {ex+=fmt.Sprintf(" miss %s:%x",r.Name,to)}} else {flagged++}}}
  for to:=range found[r] { if !truth[r][to] { inv++; if len(ex)<600 {ex+=fmt.Sprintf(" inv %s:%x",r.Name,to)} }}
 }
 fmt.Println(path,len(p.Routines),"exact",fmt.Sprintf("%.2f",100*float64(exact)/float64(len(p.Routines))),"tables",tables,"slots",slots,"invented",inv,"missed",missed,"flagged",flagged,ex)
}}
func TestWhy(t *testing.T){ for _,path:=range strings.Fields(os.Getenv("DEVF")) {
 p:=recoverFile(t,path); why:=map[string]int{}; ex:=map[string]string{}
 for _,r:=range p.Routines { if r.LeftOut!="" { k:=r.LeftOut; if i:=strings.LastIndex(k," at ");i>0 {k=k[:i]}; why[k]++; if why[k]<8 { ex[k]+=" "+r.Name+":"+r.LeftOut[len(r.LeftOut)-6:]} } }
 for k,n:=range why { fmt.Println(path,n,k,ex[k]) }
}}
